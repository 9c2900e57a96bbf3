"""What the commands share on a terminal: options, results, questions, failures. Knows no archive."""

"""What the commands share on a terminal: options, results, questions, failures. Independent of archives."""

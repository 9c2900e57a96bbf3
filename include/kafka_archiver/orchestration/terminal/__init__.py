"""The terminal as all commands use it: options, results, questions, failures. Independent of archives."""

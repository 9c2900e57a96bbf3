"""Messages to people: errors, actions, advice, and foreign text in our messages. Pure."""

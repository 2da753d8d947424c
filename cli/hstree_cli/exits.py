"""Exit statuses; 0 is success."""

#: A file that cannot be read, used or written.
BAD_INPUT = 1
#: Options or arguments that the command does not have, or that cannot have that value.
WRONG_USAGE = 2
#: Ctrl-C, or SIGTERM.
INTERRUPTED = 130

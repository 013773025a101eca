"""Runs a command on a pseudo-terminal of 40 x 120 and prints what a terminal would have been sent."""

import fcntl
import os
import pty
import struct
import sys
import termios

child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
while True:
    try:
        sent = os.read(terminal, 65536)
    except OSError:  # Linux: the other side has closed.
        break
    if not sent:
        break
    sys.stdout.buffer.write(sent)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))

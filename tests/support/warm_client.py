"""Stands for `turnloom` and `python` in a shell: a warm process takes its streams and works.

What comes of it is called, and finds itself, as it would without this. Without `site`, this starts
in a hundredth of a second.
"""

import json
import os
import signal
import socket
import sys

env = dict(os.environ)
control = socket.socket(fileno=int(env.pop("WARM_CONTROL")))
_, _, env["PATH"] = env["PATH"].partition(os.pathsep)  # the folder in which this stands
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
program = os.path.join(os.path.dirname(sys.executable), name)
if name == "python" and (not words or words[0].startswith("-")):
    os.execve(program, [program, *words], env)
request = {"program": program, "words": words, "folder": os.getcwd(), "env": env}
reply, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
socket.send_fds(control, [json.dumps(request).encode()], [0, 1, 2, end.fileno()])
end.close()
reply.recv(64)  # its process id
code = int(reply.recv(64))
if code < 0:  # a signal ended it, and ends this too
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)

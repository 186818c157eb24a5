"""Runs a program on a host that refuses something: refuse.py WHAT PROGRAM [ARGUMENT...]

A seccomp filter, kept over exec, answers one system call with an error:
  io_uring-forbidden  io_uring_setup fails with EPERM, as in most containers
  io_uring-missing    io_uring_setup fails with ENOSYS, as on an old kernel
  direct-io           openat with O_DIRECT fails with EINVAL, as on a file system without it
"""

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
RET_ALLOW, RET_ERRNO = 0x7FFF0000, 0x00050000
# Instructions of classic BPF: load a word of seccomp_data; jump if equal, if any bit is set; return a constant.
LOAD, IF_EQUAL, IF_SET, RETURN = 0x20, 0x15, 0x45, 0x06
CALL_NUMBER, THIRD_ARGUMENT = 0, 32
IO_URING_SETUP = 425
OPENAT, O_DIRECT = {"x86_64": (257, 0o40000), "aarch64": (56, 0o200000)}[platform.machine()]


def refuse_call(number, error):
    return [(LOAD, 0, 0, CALL_NUMBER), (IF_EQUAL, 0, 1, number), (RETURN, 0, 0, RET_ERRNO | error),
            (RETURN, 0, 0, RET_ALLOW)]


def refuse_direct_io():
    return [(LOAD, 0, 0, CALL_NUMBER), (IF_EQUAL, 0, 3, OPENAT), (LOAD, 0, 0, THIRD_ARGUMENT),
            (IF_SET, 0, 1, O_DIRECT), (RETURN, 0, 0, RET_ERRNO | errno.EINVAL), (RETURN, 0, 0, RET_ALLOW)]


FILTERS = {
    "io_uring-forbidden": lambda: refuse_call(IO_URING_SETUP, errno.EPERM),
    "io_uring-missing": lambda: refuse_call(IO_URING_SETUP, errno.ENOSYS),
    "direct-io": refuse_direct_io,
}


def main():
    instructions = FILTERS[sys.argv[1]]()
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in instructions))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0)):
        if libc.prctl(*call) != 0:
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[2], sys.argv[2:])


main()

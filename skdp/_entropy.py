"""Sources of uniform random bits for the noise sampler.

Two kinds, one protocol:

* `system_source` gives bits that nobody can predict: operating-system entropy, or AES-256 in
  counter mode under a fresh operating-system key where ``cryptography`` is installed (the
  ``fast`` extra). Every private release uses it.
* `keyed_source` gives a reproducible stream, a pseudo-random function of byte strings. It makes
  seeded fits repeatable and is the same on every machine, with or without extras.

No source touches the global state of `random` or `numpy.random`.
"""

import hashlib
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["BitSource", "keyed_source", "system_source"]

# Below this many bytes a call to the operating system is cheaper than setting up a cipher
# (5 microseconds, and 35 milliseconds for the first import).
_CIPHER_FROM_BYTES = 2048
# The cipher encrypts zeros: its output is then the bare key stream.
_ZEROS = memoryview(bytes(1 << 16))

# Counts the forks this process descends from. A process id alone can repeat (a fork into a new
# pid namespace, or an id used again), so a source is bound to both.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class BitSource(Protocol):
    """Anything that hands out independent uniform 64-bit words."""

    def words(self, n: int) -> NDArray[np.uint64]:
        """Return the next `n` words. The caller may overwrite them if they are writable."""
        ...


def _little_endian(data: bytearray) -> NDArray[np.uint64]:
    return np.frombuffer(data, dtype="<u8").astype(np.uint64, copy=False)


def _system_bytes(size: int) -> bytes:
    found = os.urandom(size)
    if len(found) != size:  # a broken replacement; bits that are missing must not become noise
        raise OSError(f"the operating system gave {len(found)} bytes of entropy for {size}")
    return found


class _SystemSource(threading.local):
    """Operating-system entropy, stretched by AES-256-CTR for large requests when available.

    A `threading.local`, so every thread has a cipher of its own and no lock can be inherited in a
    locked state by a forked child.
    """

    def __init__(self) -> None:
        self._cipher: Any = None
        self._owner = (-1, -1)

    def words(self, n: int) -> NDArray[np.uint64]:
        size = 8 * n
        new_cipher = _cipher_factory() if size >= _CIPHER_FROM_BYTES else None
        if new_cipher is None:
            return _little_endian(bytearray(_system_bytes(size)))
        owner = (os.getpid(), _forks)
        if self._owner != owner:
            # First use, or first use after a fork: never continue a key stream that another
            # process holds a copy of.
            self._cipher = new_cipher()
            self._owner = owner
        out = bytearray(size + 16)  # update_into wants a spare block
        with memoryview(out) as room:
            for start in range(0, size, len(_ZEROS)):
                step = min(len(_ZEROS), size - start)
                self._cipher.update_into(_ZEROS[:step], room[start : start + step + 16])
        return _little_endian(out)[:n]


@cache
def _cipher_factory() -> Callable[[], Any] | None:
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError:
        return None
    # A fresh 256-bit key serves one source only, so the counter may start at zero.
    return lambda: Cipher(algorithms.AES(_system_bytes(32)), modes.CTR(bytes(16))).encryptor()


def system_source() -> BitSource:
    """Return a new source of unpredictable bits.

    Returns
    -------
    BitSource
        Words come from `os.urandom`; where the optional package ``cryptography`` is installed,
        large requests come from AES-256-CTR keyed by `os.urandom`. Safe to use after a fork (a
        child process takes a new key) and from several threads.
    """
    return _SystemSource()


class _KeyedSource:
    """SHAKE-128 of a key and a request counter."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._request = 0

    def words(self, n: int) -> NDArray[np.uint64]:
        state = hashlib.shake_128(self._key)
        state.update(self._request.to_bytes(16, "little"))
        self._request += 1
        return _little_endian(bytearray(state.digest(8 * n)))


def keyed_source(*parts: bytes) -> BitSource:
    """Return a reproducible source whose stream is a pseudo-random function of `parts`.

    Parameters
    ----------
    *parts : bytes
        The key material. Parts are hashed with their lengths, so ``(b"ab", b"c")`` and
        ``(b"a", b"bc")`` give unrelated streams.

    Returns
    -------
    BitSource
        The same parts and the same sequence of request sizes give the same words on every
        platform. Whoever knows the parts knows the noise: fits that use it are not private.
        One source serves one thread.
    """
    digest = hashlib.blake2b(person=b"skdp-noise-v1")
    digest.update(len(parts).to_bytes(8, "little"))
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return _KeyedSource(digest.digest())

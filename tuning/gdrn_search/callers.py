"""Who may call the chief of a search: whoever can read the search's folder."""

import hmac
import ipaddress
import os
import re
import secrets
import socket
from pathlib import Path

import grpc

# What a caller tells with each call, and the file of the folder that has it.
TOKEN = "token"
_LENGTH = 32
_IS_TOKEN = re.compile(rf"[0-9a-f]{{{_LENGTH}}}")
_REFUSED = (
    "the chief has another search, in another folder: --out must be the folder that "
    "the chief has"
)


def make_token(folder: Path) -> str:
    """The token of a search: that of the folder or, if it has none yet, a new one.

    Of all users of the machine, only the one who made it can read the file.
    """
    file, partial = folder / TOKEN, folder / f"partial-{TOKEN}"
    if not file.exists():
        partial.unlink(missing_ok=True)
        partial.touch(mode=0o600, exist_ok=False)
        partial.write_text(secrets.token_hex(_LENGTH // 2) + "\n", encoding="utf-8")
        os.replace(partial, file)
    return read_token(folder)


def read_token(folder: Path) -> str:
    """The token of the search that a chief has in a folder.

    Raises:
        FileNotFoundError: If there is none.
        ValueError: If the file is damaged.
    """
    file = folder / TOKEN
    if not file.exists():
        raise FileNotFoundError(
            f"{folder} is not the folder of the chief's search. --out must be a "
            "folder that all machines see"
        )
    found = file.read_text(encoding="utf-8", errors="replace").strip()
    if not _IS_TOKEN.fullmatch(found):
        raise ValueError(
            f"{file} is damaged: it must have {_LENGTH} hexadecimal characters. Delete "
            "it, and start the chief and the workers anew"
        )
    return found


class OnlyWithToken(grpc.ServerInterceptor):
    """Sends away who does not tell the token, whichever method is called."""

    def __init__(self, token: str):
        self.token = token.encode()
        # Of a stream: for a single message, which may never come, gRPC would wait.
        self.refusal = grpc.stream_unary_rpc_method_handler(_refuse)

    def intercept_service(self, continuation, handler_call_details):
        told = dict(handler_call_details.invocation_metadata).get(TOKEN, "")
        if hmac.compare_digest(told.encode(), self.token):
            return continuation(handler_call_details)
        return self.refusal


def _refuse(requests, context):
    context.abort(grpc.StatusCode.PERMISSION_DENIED, _REFUSED)


def is_loopback(address: str) -> bool:
    """Whether only this machine can call at an address `HOST:PORT`."""
    host = address.rpartition(":")[0].strip("[]")
    found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    return all(ipaddress.ip_address(one).is_loopback for one in found)

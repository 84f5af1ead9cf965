"""The image in a request: a raw body, or the one part named ``file`` of a multipart body.

Parsed from memory: a body within the limits is there already, and a read-only root file system has no place
to spool it to.
"""

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from assay.serving.errors import MultipartInvalidError

_MAX_PARTS = 16
"""Parts of a body. One is used; a form may send a few fields with it."""

_FIELD = b"file"


class _Parts:
    """Collects the parts called ``file``; callbacks of the parser."""

    def __init__(self) -> None:
        self.files: list[bytearray] = []
        self.complete = False
        self._parts = 0
        self._header_name = b""
        self._header_value = b""
        self._wanted = False

    def on_part_begin(self) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise MultipartInvalidError(f"The body has more than {_MAX_PARTS} parts; send the one called file.")
        self._wanted = False

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def on_header_end(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            _, options = parse_options_header(self._header_value)
            self._wanted = options.get(b"name") == _FIELD
        self._header_name = self._header_value = b""

    def on_headers_finished(self) -> None:
        if self._wanted:
            self.files.append(bytearray())

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._wanted:
            self.files[-1] += data[start:end]

    def on_end(self) -> None:
        self.complete = True


def image_bytes(body: bytes, content_type: str) -> bytes:
    """The encoded image of a request. What a raw body's ``Content-Type`` claims does not matter: its bytes decide.

    Raises `MultipartInvalidError` for a multipart body that is broken or holds no file, or more than one.
    """
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        return body
    boundary = options.get(b"boundary")
    if not boundary:
        raise MultipartInvalidError("The Content-Type of the multipart body names no boundary.")
    parts = _Parts()
    callbacks = {name: getattr(parts, name) for name in dir(parts) if name.startswith("on_")}
    try:
        parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type] # the names are those of its TypedDict
        parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise MultipartInvalidError("The multipart body is broken or cut off.") from error
    if not parts.complete:  # the parser itself does not mind
        raise MultipartInvalidError("The multipart body ends before its last boundary.")
    if len(parts.files) != 1:
        raise MultipartInvalidError(f"Expected one part called file in the multipart body; got {len(parts.files)}.")
    return bytes(parts.files[0])

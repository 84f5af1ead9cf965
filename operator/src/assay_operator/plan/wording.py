"""How parts of a message become one."""


def sentences(*parts: str) -> str:
    """The parts as sentences, however they end; empty ones are left out, and blanks are single."""
    cleaned = (" ".join(part.split()).rstrip(". ") for part in parts)
    return ". ".join(part for part in cleaned if part)

"""Mutations of files: bytes, lines, numbers, JSON values, and headers of binary formats.

Each takes a `random.Random` and the content of a file and returns another content; the same
random state gives the same.
"""

import gzip
import io
import json
import re
import zipfile
from copy import deepcopy
from random import Random

NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
#: What numbers are replaced with.
EXTREMES = [
    *(b"%d" % (sign * 2**k - less) for k in (7, 8, 15, 16, 31, 32, 53, 63, 64)
      for sign in (1, -1) for less in (0, 1)),
    *(b"0", b"-0", b"1", b"-1", b"2", b"3", b"00", b"+1", b"1.5", b"1e5", b"1e308", b"1e999"),
    *(b"-1e999", b"1e-320", b"NaN", b"Infinity", b"inf", b"nan", b"0x10", b"1_0"),
    *(b"", b"9" * 25, b"9" * 5000, b"\xd9\xa1", b"true", b"null", b'"1"', b"[]", b"1L"),
]  # fmt: skip
#: What is inserted into texts.
TOKENS = [
    *(b"\n", b"\r\n", b"\r", b"\t", b" ", b"\0", b"\x1a", b"\x1b[2J", b"\x85", b"\xa0", b"\xff"),
    *(b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\xf0\x9f\x8e\x88", b"\xc3", b"<unk>"),
    *(b"[", b"]", b"{", b"}", b",", b":", b'"', b"'", b"\\", b"\\ud800", b"\\u0000", b"//", b"#"),
    *(b"(", b")", b";", b"<", b">", b"&", b"&lt;", b"&#0;", b"<!-- ", b"<![CDATA[", b"</graph>"),
    *(b"null", b"true", b"{}", b"[]", b"[[]]", b'""', b"<eos>", b"0 0", b"-1 0", b"1\t", b"[" * 99),
]  # fmt: skip
#: What takes the place of a value in JSON.
VALUES = [
    *(None, True, False, 0, 1, -1, 1.5, -0.0, 1e308, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63)),
    *(2**64, 10**30, "", "a", "1", "\0", "\ud800", "\u2028", "x" * 5000, [], {}, [[]], [None]),
    *([1, 2], [-1, -2], {"a": 1}, [0] * 300, {"": {}}, ["a", "a"], "lbl", "cbow", "tree", "flat"),
]
DEPTHS = (5, 100, 900, 1100, 20_000)
_DEEP = '"@deep@"'
_DESCR = (
    *("<f4", "<f8", ">f4", "<f2", "|u1", "<i8", ">i8", "<u8", "f8", "=f4", "|b1", "<f16", "<i3"),
    *("|V0", "|V8", "|O", "<c16", "<U1", "<U0", "|S0", "<M8[D]", "x"),
)
_AXES = (0, 1, 2, 3, 4, 5, 8, 2**31, 2**40, 2**63 - 1, 2**63, 2**64, 10**25, -1)


def mutated(random: Random, name: str, content: bytes) -> bytes:
    """Mutate a file as its name's ending says: inside gzip, zip, JSON or a header, or its bytes."""
    if random.random() < 0.25:
        return mutated_bytes(random, content)
    if name.endswith(".gz"):
        inner = mutated(random, name.removesuffix(".gz"), gzip.decompress(content))
        return bomb(random) if random.random() < 0.002 else gzip.compress(inner, 1, mtime=0)
    if name.endswith(".json"):
        return (
            mutated_json(random, content)
            if random.random() < 0.6
            else mutated_text(random, content)
        )
    if name.endswith(".npz"):
        return mutated_zip(random, content)
    if name.endswith(".npy"):
        return mutated_npy(random, content)
    if name.endswith(".safetensors"):
        return mutated_safetensors(random, content)
    if name.endswith(".bin"):
        head, line_end, rest = content.partition(b"\n")
        return mutated_text(random, head) + line_end + mutated_bytes(random, rest)
    return mutated_text(random, content)


def mutated_bytes(random: Random, content: bytes) -> bytes:
    """Flip, set, cut, insert, double, move or truncate bytes, one to four times."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(data) + 1)
        size = random.choice((1, 2, 4, 8, 16, 100))
        match random.randrange(8):
            case 0 | 1 if at < len(data):
                data[at] ^= 1 << random.randrange(8)
            case 2 if at < len(data):
                data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
            case 3:
                del data[at : at + size]
            case 4:
                data[at:at] = random.randbytes(size)
            case 5:
                data[at:at] = data[at : at + size]
            case 6:
                chunk = data[at : at + size]
                del data[at : at + size]
                to = random.randrange(len(data) + 1)
                data[to:to] = chunk
            case _:
                del data[at:]
    return bytes(data)


def mutated_text(random: Random, content: bytes) -> bytes:
    """Change numbers, tokens and lines, one to three times."""
    for _ in range(random.choice((1, 1, 2, 3))):
        match random.randrange(6):
            case 0 | 1:
                content = with_number(random, content)
            case 2:
                at = random.randrange(len(content) + 1)
                content = content[:at] + random.choice(TOKENS) + content[at:]
            case 3 | 4:
                content = with_lines(random, content)
            case _:
                content = mutated_bytes(random, content)
    return content


def with_number(random: Random, content: bytes) -> bytes:
    """Put another number in the place of one."""
    found = list(NUMBER.finditer(content))
    if not found:
        return content
    number = random.choice(found)
    new = random.choice(found)[0] if random.random() < 0.3 else random.choice(EXTREMES)
    return content[: number.start()] + new + content[number.end() :]


def with_lines(random: Random, content: bytes) -> bytes:
    """Drop, double, swap, empty or join lines, or fields of one."""
    lines = content.split(b"\n")
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = b""
        case 4:
            del lines[at + 1 :]
        case _:
            mark = random.choice((b"\t", b" ", b","))
            fields = lines[at].split(mark)
            random.choice((fields.reverse, fields.pop, lambda: fields.append(fields[0])))()
            lines[at] = mark.join(fields)
    return b"\n".join(lines)


def mutated_json(random: Random, content: bytes) -> bytes:
    """Change values of a JSON document, or its text where it is none."""
    try:
        document = json.loads(content)
    except ValueError:
        return mutated_text(random, content)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        document = with_value(random, document)
    text = json.dumps(document)
    if _DEEP in text:
        depth = random.choice(DEPTHS)
        opening, closing = random.choice((("[", "]"), ('{"a":', "}")))
        text = text.replace(_DEEP, opening * depth + "1" + closing * depth)
    if random.random() < 0.03:
        text = text.replace('": ', '": 0, "', 1) if random.random() < 0.5 else text[:-1]
    return text.encode("utf-8", "surrogatepass")


def with_value(random: Random, document: object) -> object:
    """Put, take, double, rename or swap a value somewhere in a JSON document."""
    place, key, value = None, None, document
    while isinstance(value, dict | list) and value and (place is None or random.random() < 0.8):
        place = value
        key = (
            random.choice(list(place)) if isinstance(place, dict) else random.randrange(len(place))
        )
        value = place[key]
    new = deepcopy(random.choice((*VALUES, _DEEP.strip('"'))))
    if place is None:
        return new
    match random.randrange(7):
        case 0:
            del place[key]
        case 1 if isinstance(place, list):
            place.insert(key, value)
        case 1:
            place[f"{key}2"] = value
        case 2 if isinstance(place, dict):
            place[random.choice(("", "x", key.upper(), f"{key} "))] = place.pop(key)
        case 2:
            random.shuffle(place)
        case 3 if isinstance(value, int | float):
            place[key] = value + random.choice((-2, -1, 1, 2, 0.5, 2**40))
        case 4 if isinstance(value, list):
            place[key] = random.choice(
                (value * 2, value[1:], value[:-1], [value], dict.fromkeys("ab", 1))
            )
        case 4 if isinstance(value, dict):
            place[key] = random.choice(([value], list(value), list(value.values())))
        case 4 if isinstance(value, str):
            place[key] = random.choice(
                (value * 2, value[:-1], value + "\0", [value], {value: 1}, 0)
            )
        case _:
            place[key] = new
    return document


def mutated_npy(random: Random, content: bytes) -> bytes:
    """Change the header of a `.npy` file, or its numbers."""
    length = int.from_bytes(content[8:10], "little")
    head, data = content[10 : 10 + length], content[10 + length :]
    version = content[6:8]
    match random.randrange(8):
        case 0 | 1:
            shape = ", ".join(str(random.choice(_AXES)) for _ in range(random.randrange(4)))
            head = re.sub(rb"\([^)]*\)", f"({shape}{random.choice((',', ''))})".encode(), head)
        case 2:
            head = re.sub(
                rb"'descr': '[^']*'", f"'descr': '{random.choice(_DESCR)}'".encode(), head
            )
        case 3:
            order = random.choice((b"True", b"False", b"1", b"None", b"'True'"))
            head = head.replace(b"False", order)
        case 4:
            head = mutated_text(random, head)
        case 5:
            version = bytes((random.choice((1, 2, 3, 9)), random.choice((0, 0, 1))))
        case 6:
            data = mutated_bytes(random, data)
        case _:
            length = random.choice((0, 1, length - 1, length + 1, 10_000, 65_535))
            return content[:8] + length.to_bytes(2, "little") + head + data
    size = 2 if version[0] == 1 else 4
    return content[:6] + version + len(head).to_bytes(size, "little") + head + data


def mutated_zip(random: Random, content: bytes) -> bytes:
    """Change, drop, rename, double or compress a member of an `.npz`, its checksums right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    at = random.randrange(len(members))
    name, data = members[at]
    compression = zipfile.ZIP_STORED
    match random.randrange(10):
        case 0:
            del members[at]
        case 1:
            members[at] = (random.choice(("x.npy", name + "y", "../" + name, "")), data)
        case 2:
            members.append(("more.npy", data))
        case 3:
            members[at] = (name, random.choice(members)[1])
        case 4:
            compression = zipfile.ZIP_DEFLATED
        case _ if name == "header.npy" and random.random() < 0.7:
            end = 10 + int.from_bytes(data[8:10], "little")
            text = mutated_json(random, data[end:])
            shape = re.sub(rb"\([0-9]+,\)", b"(%d,)" % len(text), data[10:end])
            members[at] = (name, data[:8] + len(shape).to_bytes(2, "little") + shape + text)
        case _:
            members[at] = (name, mutated_npy(random, data))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return file.getvalue()


def mutated_safetensors(random: Random, content: bytes) -> bytes:
    """Change the JSON header of a `.safetensors` file, its length, or its numbers."""
    length = int.from_bytes(content[:8], "little")
    head, data = content[8 : 8 + length], content[8 + length :]
    match random.randrange(5):
        case 0 | 1:
            head = mutated_json(random, head)
        case 2:
            head = with_number(random, head)
        case 3:
            length = random.choice((0, 1, length - 1, length + 8, 2**20, 2**40, 2**64 - 1))
            return length.to_bytes(8, "little") + head + data
        case _:
            data = mutated_bytes(random, data)
    return len(head).to_bytes(8, "little") + head + data


def bomb(random: Random) -> bytes:
    """Return gzip of 32 MB of one short text, again and again."""
    text = random.choice((b" ", b"[", b"0,", b"a 1 2 3\n", b"0\tw\t1\n", b'"a",', b"[],", b"\0"))
    return gzip.compress(text * ((1 << 20) // len(text)), 1, mtime=0) * 32

"""Mutations of files: bytes, lines, numbers, JSON values, and headers of binary formats.

Each takes a `random.Random` and the content of a file and returns another content, the same for the
same random state.
"""

import gzip
import io
import json
import re
import zipfile
from copy import deepcopy
from random import Random

NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
#: Limits of number types, in text.
LIMITS = [
    b"%d" % (sign * 2**bits - less)
    for bits in (7, 8, 15, 16, 31, 32, 53, 63, 64)
    for sign in (1, -1)
    for less in (0, 1)
]
#: Other texts in place of numbers.
ODD_NUMBERS = (
    b"0 -0 1 -1 2 3 00 +1 1.5 1e5 1e308 1e999 -1e999 1e-320 NaN Infinity nan 0x10 1_0"
    b' true null "1" [] \xd9\xa1'
).split(b" ")
NUMBERS = [*LIMITS, *ODD_NUMBERS, b"", b"9" * 25, b"9" * 5000]
#: Characters and marks that are inserted into texts.
CONTROLS = b"\n|\r\n|\r|\t| |\0|\x1a|\x1b[2J|\x85|\xa0|\xff|0 0|-1 0|1\t".split(b"|")
UNICODE = b"\xef\xbb\xbf|\xed\xa0\x80|\xe2\x80\xa8|\xf0\x9f\x8e\x88|\\ud800".split(b"|")
MARKS = (
    b"[ ] { } , : \" ' \\ // # ( ) ; < > & &lt; &#0; <!-- <![CDATA[ </graph> null {} [[]]"
    b" <unk> <eos>"
).split()
TOKENS = [*CONTROLS, *UNICODE, *MARKS, b"[" * 99]
#: Placeholder of a deeply nested value.
DEEP = "@deep@"
DEPTHS = (5, 100, 900, 1100, 20_000)
#: Values that replace others in JSON.
JSON_NUMBERS = [0, 1, -1, 1.5, -0.0, 1e308, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 10**30]
JSON_TEXTS = ["", "a", "1", "\0", "\ud800", "\u2028", "x" * 5000, "lbl", "cbow", "tree", "flat"]
JSON_LISTS = [[], [[]], [None], [1, 2], [-1, -2], [0] * 300, ["a", "a"]]
VALUES = [None, True, *JSON_NUMBERS, *JSON_TEXTS, *JSON_LISTS, {}, {"a": 1}, {"": {}}, DEEP]
DTYPES = b"<f4 <f8 >f4 <f2 |u1 <i8 <u8 f8 =f4 |b1 <f16 <i3 |V0 |O <c16 <U1 |S0 <M8[D] x".split()
AXES = (0, 1, 2, 3, 4, 5, 8, 2**31, 2**40, 2**63 - 1, 2**63, 2**64, 10**25, -1)


def mutated(random: Random, name: str, content: bytes) -> bytes:
    """Mutate a file by the ending of its name: inside gzip, zip, JSON or a header, or its bytes."""
    if random.random() < 0.25:
        return mutated_bytes(random, content)
    if name.endswith(".gz"):
        inner = mutated(random, name.removesuffix(".gz"), gzip.decompress(content))
        return bomb(random) if random.random() < 0.002 else gzip.compress(inner, 1, mtime=0)
    if name.endswith(".bin"):
        head, line_end, rest = content.partition(b"\n")
        return mutated_text(random, head) + line_end + mutated_bytes(random, rest)
    if name.endswith(".json") and random.random() < 0.6:
        return mutated_json(random, content)
    by_ending = {".npz": mutated_zip, ".npy": mutated_npy, ".safetensors": mutated_safetensors}
    ending = f".{name.rpartition('.')[2]}"
    return by_ending.get(ending, mutated_text)(random, content)


def mutated_bytes(random: Random, content: bytes) -> bytes:
    """Flip, set, cut, insert, double or truncate bytes, one to four times."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(data) + 1)
        size = random.choice((1, 2, 4, 8, 16, 100))
        match random.randrange(7):
            case 0 | 1 if at < len(data):
                data[at] ^= 1 << random.randrange(8)
            case 2 if at < len(data):
                data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 3:
                del data[at : at + size]
            case 4:
                data[at:at] = random.randbytes(size)
            case 5:
                data[at:at] = data[at : at + size]
            case _:
                del data[at:]
    return bytes(data)


def mutated_text(random: Random, content: bytes) -> bytes:
    """Change numbers, tokens and lines, one to three times."""
    for _ in range(random.choice((1, 1, 2, 3))):
        numbers = list(NUMBER.finditer(content))
        match random.randrange(6):
            case 0 | 1 if numbers:
                number = random.choice(numbers)
                new = random.choice((random.choice(numbers)[0], *random.choices(NUMBERS, k=3)))
                content = content[: number.start()] + new + content[number.end() :]
            case 2:
                at = random.randrange(len(content) + 1)
                content = content[:at] + random.choice(TOKENS) + content[at:]
            case 3 | 4:
                content = with_lines(random, content)
            case _:
                content = mutated_bytes(random, content)
    return content


def with_lines(random: Random, content: bytes) -> bytes:
    """Drop, double, swap or empty lines, or change the fields of one."""
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
    depth = random.choice(DEPTHS)
    opening, closing = random.choice((("[", "]"), ('{"a":', "}")))
    text = json.dumps(document).replace(f'"{DEEP}"', opening * depth + "1" + closing * depth)
    if random.random() < 0.03:  # a key twice, or a document that is cut
        text = text.replace('": ', '": 0, "', 1) if random.random() < 0.5 else text[:-1]
    return text.encode("utf-8", "surrogatepass")


def with_value(random: Random, document: object) -> object:
    """Replace, drop, double, rename, wrap or change a value somewhere in a JSON document."""
    place, key, value = None, None, document
    while isinstance(value, dict | list) and value and (place is None or random.random() < 0.8):
        place = value
        key = random.choice(list(place) if isinstance(place, dict) else range(len(place)))
        value = place[key]
    new = deepcopy(random.choice(VALUES))
    if place is None:
        return new
    match random.randrange(7):
        case 0:
            del place[key]
        case 1 if isinstance(place, list):
            place.insert(key, value)
        case 1:
            place[random.choice(("", "x", key.upper(), f"{key} "))] = place.pop(key)
        case 2 if isinstance(value, int | float):
            place[key] = value + random.choice((-2, -1, 1, 2, 0.5, 2**40))
        case 3 if isinstance(value, list | str):
            place[key] = random.choice((value * 2, value[1:], value[:-1], [value]))
        case 3 if isinstance(value, dict):
            place[key] = random.choice(([value], list(value), list(value.values())))
        case _:
            place[key] = new
    return document


def mutated_npy(random: Random, content: bytes) -> bytes:
    """Change the header of a `.npy` file, or its numbers."""
    length = int.from_bytes(content[8:10], "little")
    head = content[10 : 10 + length]
    data = content[10 + length :]
    version = content[6:8]
    match random.randrange(8):
        case 0 | 1:
            shape = ", ".join(str(random.choice(AXES)) for _ in range(random.randrange(4)))
            head = re.sub(rb"\([^)]*\)", f"({shape}{random.choice((',', ''))})".encode(), head)
        case 2:
            head = re.sub(rb"'descr': '[^']*'", b"'descr': '%b'" % random.choice(DTYPES), head)
        case 3:
            head = head.replace(b"False", random.choice((b"True", b"1", b"None", b"'True'")))
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
        case _ if name == "header.npy" and random.random() < 0.7:  # an array of JSON's bytes
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
    match random.randrange(4):
        case 0 | 1:
            head = mutated_json(random, head)
        case 2:
            length = random.choice((0, 1, length - 1, length + 8, 2**20, 2**40, 2**64 - 1))
            return length.to_bytes(8, "little") + head + data
        case _:
            data = mutated_bytes(random, data)
    return len(head).to_bytes(8, "little") + head + data


def bomb(random: Random) -> bytes:
    """Return gzip of 32 MB of one repeated text."""
    text = random.choice((b" ", b"[", b"0,", b"a 1 2 3\n", b"0\tw\t1\n", b'"a",', b"[],", b"\0"))
    return gzip.compress(text * ((1 << 20) // len(text)), 1, mtime=0) * 32

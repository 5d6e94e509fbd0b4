"""The table of a job file's keys, from job_spec.proto (keys, types, words) and the specs of core/domain (defaults, bounds)."""

import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROTO = "proto/chainfleet/v1/job_spec.proto"
LAYERS = "proto/chainfleet/v1/layers.proto"
# Messages whose struct has another name than NAMESpec.
STRUCTS = {"Until": "StopRuleSpec", "Model": "BuiltinModel"}
# The header whose structs say by kName which of the message's kinds they are.
KINDS = {"Sampler": "sampler_spec.h", "Prior": "prior_spec.h", "Schedule": "schedule_spec.h", "Potential": "potential_spec.h",
         "Likelihood": "likelihood_spec.h", "Layer": "layer_spec.h"}
TYPES = {"double": "number", "int32": "integer", "int64": "integer", "uint64": "integer", "bool": "boolean", "string": "text"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


class Message:
    def __init__(self, name):
        self.name, self.fields, self.messages, self.words = name, [], {}, ""


class Field:
    def __init__(self, label, kind, name, words, oneof):
        self.label, self.kind, self.name, self.words, self.oneof = label, kind, name, words, oneof


def parse_job_spec():
    """The message JobSpec, with those nested in it, and Layer as one of them."""
    root = parse_message(read(PROTO), "JobSpec")
    root.messages["Layer"] = parse_message(read(LAYERS), "Layer")
    return root


def parse_message(text, top):
    """A message at the top of a file, with those nested in it."""
    root = Message("")
    open_blocks, comment, oneof = [root], [], ""
    for line in text[text.index(f"message {top} {{"):].splitlines():
        code, _, words = line.strip().partition("//")
        code, words = code.strip(), words.strip()
        if not code:
            comment.append(words)
            continue
        if match := re.match(r"message (\w+) \{(\})?", code):
            message = Message(match.group(1))
            message.words = " ".join(comment)
            next(m for m in reversed(open_blocks) if m).messages[message.name] = message
            open_blocks += [] if match.group(2) else [message]
        elif match := re.match(r"oneof (\w+) \{", code):
            oneof = match.group(1)
            open_blocks.append(None)
        elif code == "}":
            oneof = "" if open_blocks.pop() is None else oneof
        else:
            label, kind, name = re.match(r"(?:(optional|repeated) )?(map<.*>|\w+) (\w+) = \d+;$", code).groups()
            said = words or " ".join(comment)
            next(m for m in reversed(open_blocks) if m).fields.append(Field(label, kind, name, said, oneof))
        comment = []
    return root.messages[top]


class Struct:
    """Defaults and bounds of a C++ struct, by field."""

    def __init__(self, body, constants):
        self.defaults, self.bounds, self.choices = {}, {}, {}
        self.words = dict(re.findall(r"^  [\w:<>]+ (\w+)(?: = [^;,]+)?;  // (.*)$", body, re.M))
        for kind, names in re.findall(r"^  ([\w:<>]+) (\w+(?: = [^;,]+)?(?:, \w+(?: = [^;,]+)?)*);", body, re.M):
            for name, _, value in (one.partition(" = ") for one in names.split(", ")):
                self.defaults[name], self.choices[name] = (kind, value), kind
        for name, bounds in re.findall(r'visit\("(\w+)", self\.\w+(?:, (.*?))?\);', body):
            self.bounds[name] = _bounds_in_words(bounds, constants) if bounds else ""


def _number(text, constants):
    text = constants.get(text.strip().removeprefix("limits::"), text.strip()).replace("'", "")
    if match := re.match(r"int64_t\{(\d+)\} << (\d+)$", text):
        return f"{int(match.group(1)) << int(match.group(2)):,}"
    value = float(text)
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _bounds_in_words(text, constants):
    text = constants.get(text, text)
    name, inside = re.match(r"(\w+)[({](.*)[)}]$", text).groups()
    if not inside:  # a rule of messages and records, no bound
        return ""
    if name == "Bounds":
        parts = dict(re.findall(r"\.(\w+) = (\w+)", inside))
        return f"above {_number(parts['least'], constants)}, at most {_number(parts['most'], constants)}"
    values = [_number(part, constants) for part in re.split(r",\s", inside)]
    return {"Above": "above {0}", "AtLeast": "at least {0}", "Between": "{0} to {1}", "Below": "at least {0}, below {1}",
            "Inside": "above {0}, below {1}"}[name].format(*values)


class Specs:
    """The structs of core/domain, by name and by header and kName, and what validation bounds by path."""

    def __init__(self):
        headers = {os.path.basename(path): read(path) for path in sorted(glob.glob("core/domain/*.h", root_dir=ROOT))}
        everything = "\n".join([read("core/base/limits.h"), *headers.values()])
        self.constants = dict(re.findall(r"constexpr \w+(?:_t)? (k\w+) = ([^;]+);", everything))
        self.enums = {name: re.findall(r'"([^"]+)"', body) for name, body in
                      re.findall(r"EnumNames\((\w+)\) \{(.*?)\n\}", everything, re.S)}
        self.structs, self.kinds = {}, {}
        for header, text in headers.items():
            for comment, name, body in re.findall(r"^((?://[^\n]*\n)*)struct (\w+) \{\n(.*?)^\};", text, re.M | re.S):
                self.structs[name] = Struct(body, self.constants)
                self.structs[name].comment = re.sub(r"^// ?|\n// ?", " ", comment).strip()
                if kind := re.search(r'kName\[\] = "(\w+)"', body):
                    self.kinds[header, kind.group(1)] = self.structs[name]
                if base := re.search(r"\{ (\w+)::Fields\(self, visit\); \}", body):
                    self.structs[name].bounds = self.structs[base.group(1)].bounds
        checks = read("core/domain/job_spec.cc")
        self.checked = {path: f"at least {least}" for path, least in
                        re.findall(r'RequireAtLeast\("([\w.]+)", [^,]+, (\d+), ', checks)}
        self.checked |= {path: "at least 0" for path in re.findall(r'RequireFiniteNotNegative\("([\w.]+)"', checks)}
        self.checked |= {path: _bounds_in_words(f"Between({least}, {most})", self.constants) for path, least, most in
                         re.findall(r'RequireBetween\("([\w.]+)", [^,]+, (\w+), ([\w:]+), ', checks)}
        most = re.search(r"spec\.chains > limits::(\w+)", checks).group(1)
        self.checked["chains"] += f", at most {_number(most, self.constants)}"

    def default(self, struct, field):
        kind, value = struct.defaults.get(field.name, ("", "")) if struct else ("", "")
        if kind in self.enums:
            index = re.search(r"::k(\w+)", value).group(1).lower()
            return next(name for name in self.enums[kind] if name.replace("_", "") == index)
        if value in ("true", "false") or not value:
            return value or ("false" if kind == "bool" else "")
        if not re.match(r"[\d.]", value):
            return ""
        required = value == "0" and re.match(r"above 0|1 to ", struct.bounds.get(field.name, ""))
        return "required" if required else _number(value, self.constants)

    def allowed(self, struct, path, field):
        if struct and (kind := struct.choices.get(field.name)) in self.enums:
            return ", ".join(self.enums[kind])
        return (struct.bounds.get(field.name, "") if struct else "") or self.checked.get(path, "")


def _words(text, default):
    """`text` for readers who have the table and not the sources."""
    kept = [s for s in re.split(r"(?<=[.:]) (?=[A-Z])", text.strip()) if "core/domain" not in s and "kernels" not in s]
    text = " ".join(kept)
    return re.sub(r"^default [^;,]+(?:; |$)", "", text) if default else text


def rows(specs, message, struct, prefix="", scopes=()):
    """(key, type, default, allowed, words) of each key below `message`, in the order of the file."""
    scopes = (*scopes, message)
    one_of_all = all(f.oneof for f in message.fields)
    for field in message.fields:
        path = prefix + field.name
        inner = next((s.messages[field.kind] for s in reversed(scopes) if field.kind in s.messages), None)
        own = specs.kinds.get((KINDS.get(message.name), field.name))
        listed = "list of " if field.label == "repeated" else ""
        words = field.words or (struct.words.get(field.name, "") if struct else "") or (inner.words if inner else "")
        words = words if _words(words, "") or not own else own.comment
        others = [f"`{f.name}`" for f in message.fields if f.oneof and f.oneof == field.oneof and f is not field]
        beside = f"cannot be combined with {', '.join(others)}" if others and not one_of_all else ""
        if inner is None:
            kind = "numbers by name" if field.kind.startswith("map") else TYPES[field.kind]
            default = specs.default(struct, field)
            allowed = own.bounds["value"] if own else specs.allowed(struct, path, field)
            yield path, listed + (kind + "s" if listed and kind != "text" else kind), default, allowed, \
                "; ".join(filter(None, (_words(words, default).rstrip("." if beside else ""), beside)))
            continue
        one_of = inner.fields and all(f.oneof for f in inner.fields)
        again = message.name in ("Residual", "Concat")
        kind = "layers" if inner.name == "Layer" else "one of its keys" if one_of else "group" if inner.fields else "`{}`"
        yield path, listed + kind, "", "", "; ".join(filter(None, (_words(words, "").rstrip("." if beside else ""), beside)))
        if not again:
            own = own or specs.structs.get(STRUCTS.get(inner.name, inner.name + "Spec")) or specs.structs.get(inner.name)
            yield from rows(specs, inner, own, path + ("[]." if listed else "."), scopes)


def table():
    specs = Specs()
    # A `|` would end a cell.
    lines = ["| key | type | default | allowed | meaning |", "| --- | --- | --- | --- | --- |"]
    for key, *cells in rows(specs, parse_job_spec(), specs.structs["JobSpec"]):
        lines.append(f"| `{key}` | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(re.sub(r" +\|", " |", line) for line in lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")

"""The dataclasses of the Python package that say what a job is, from job_spec.proto and the specs of core/domain."""

import re
import textwrap

import job_file

# The name of each choice between messages, and the module that has a class for each alternative.
CHOICES = {"Sampler": "samplers", "Schedule": "schedules", "Prior": "priors", "Likelihood": "likelihoods",
           "Potential": "potentials", "Layer": "layers"}
ABOUT = {"samplers": "How chains move: one sampler a job.", "schedules": "Step sizes over a run. A plain number is a constant one.",
         "priors": "Densities of the parameters before the data.", "likelihoods": "How outputs of the network explain targets.",
         "potentials": "Posteriors of closed form, without a network.", "layers": "Layers of a network of one's own."}
ACRONYMS = {"sgld": "SGLD", "emcmc": "EMCMC", "sgd": "SGD", "sghmc": "SGHMC", "sam": "SAM", "bsam": "BSAM", "mala": "MALA",
            "hmc": "HMC", "mile": "MILE", "smile": "SMILE", "mh": "MH", "swa": "SWA", "swag": "SWAG", "mc": "MC", "frn": "FRN", "relu": "ReLU",
            "gelu": "GELU", "silu": "SiLU"}
SCALARS = {"double": "float", "int32": "int", "int64": "int", "uint64": "int", "bool": "bool", "string": "str"}
WIDTH = 118


def camel(name):
    return "".join(ACRONYMS.get(word, word.capitalize()) for word in name.split("_"))


class Key:
    """A row of the table of a job file's keys."""

    def __init__(self, kind, default, allowed, words):
        self.kind, self.default, self.allowed, self.words = kind, default, allowed, words


def _inner(field, scopes):
    return next((scope.messages[field.kind] for scope in reversed(scopes) if field.kind in scope.messages), None)


def _type(field, inner, key, module):
    """(annotation, whether it may be left out)."""
    if inner is None:
        if field.kind.startswith("map"):
            return "Mapping[str, float] | None", True
        kind = SCALARS[field.kind]
        if kind == "str" and key.allowed:
            kind = "Literal[" + ", ".join(f'"{value}"' for value in key.allowed.split(", ")) + "]"
        if field.label == "repeated":
            return f"Sequence[{kind}] | None", True
        return (kind, False) if key.default == "required" else (f"{kind} | None", True)
    name = inner.name
    home = CHOICES.get(name)
    kind = name if home in (None, module) else f"{home}.{name}"
    if field.label == "repeated":
        return f"Sequence[{kind}] | None", True
    return f"{kind} | float | None" if name == "Schedule" else f"{kind} | None", True


def _described(field, key, inner):
    """Returns the docstring's line about a field: words, bounds, default.

    A group's words say its default. Its formula is left to its class.
    """
    default = key.default or ("" if inner or re.search("default|required", key.words) else "none")
    words = "" if "(default)" in key.words else key.words.partition(" Formula: ")[0].replace("`", "")
    said = default if default in ("", "required") else f"default: {default}"
    parts = [words, key.allowed and f"allowed: {key.allowed}", said]
    return f"{field.name}: " + "; ".join(part.rstrip(".") for part in parts if part) + "."


def _paragraphs(words):
    """Returns the lines of a docstring: what a class is, then its formula, source and symbols, each on a line of its own."""
    about, *rest = re.split(r"\b(?=(?:Formula|Source|Symbols): )", words.replace("`", "").replace("\\", ""))
    lines = textwrap.wrap(about.rstrip(" .") + ".", WIDTH - 8, break_on_hyphens=False) if about else []
    lines += [""] if about and rest else []
    for part in rest:
        lines += textwrap.wrap(part.rstrip(" .") + ".", WIDTH - 8, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _docstring_body(lines):
    """Returns what follows the opening quotes of a class's docstring."""
    body = "\n".join(f"    {line}" if line else "" for line in lines).strip()
    return body + ('"""' if len(lines) == 1 else '\n    """')


def _class(name, base, message, words, keys, prefix, scopes, module, extra=""):
    """The text of one dataclass."""
    doc = _paragraphs(words or f"{name}.")
    fields, about = [], []
    for field in message.fields:
        key = keys.get(prefix + field.name, Key("", "", "", ""))
        inner = _inner(field, (*scopes, message))
        annotation, optional = _type(field, inner, key, module)
        fields.append(f"    {field.name}: {annotation}" + (" = None" if optional else ""))
        about += textwrap.wrap(_described(field, key, inner), WIDTH - 8, initial_indent="    ", subsequent_indent="      ")
    doc += ["", *(line[4:] for line in about)] if about else []
    text = f'@dataclass(frozen=True, kw_only=True)\nclass {name}({base}):\n    """' + _docstring_body(doc) + "\n"
    return text + "".join(f"\n{line}" for line in [extra, *fields] if line).replace("\n\n", "\n") + ("\n" if extra or fields else "")


def _choice_module(choice, module, keys, root):
    """The module with a class for each message of a choice."""
    message = root.messages[choice]
    prefix = {"Layer": "model.layers[].", "Potential": "model.potential.", "Schedule": "learning_rate."}.get(choice, choice.lower() + ".")
    symbols = message.words.partition("Symbols: ")[2].partition(". ")[0]
    doc = _paragraphs("One of the classes of this module." + (f" Symbols: {symbols}" if symbols else ""))
    text = f'\n\nclass {choice}(Spec):\n    """' + _docstring_body(doc) + "\n"
    see = f" Symbols: help(chainfleet.{module}.{choice})." if symbols else ""
    for field in message.fields:
        inner = _inner(field, (root, message))
        if inner is None:
            continue  # a schedule's constant is a plain number
        key = keys[prefix + field.name]
        text += "\n\n" + _class(camel(field.name), choice, inner, key.words + see, keys, prefix + field.name + ".", (root, message), module,
                                f'    choice: ClassVar[str] = "{field.name}"')
    return _imports(text, ABOUT[module], [])


def _imports(text, about, modules):
    names = [name for name in ("Mapping", "Sequence") if name + "[" in text]
    lines = ["from __future__ import annotations", ""]
    if names:
        lines.append(f"from collections.abc import {', '.join(names)}")
    lines.append("from dataclasses import dataclass")
    typing = [name for name in ("ClassVar", "Literal") if name + "[" in text]
    if typing:
        lines.append(f"from typing import {', '.join(typing)}")
    lines.append("")
    if modules:
        lines.append(f"from . import {', '.join(modules)}")
    lines.append("from .spec import Spec")
    return f'"""{about}"""\n\n' + "\n".join(lines) + "\n" + text


def _specs_module(keys, root):
    """Everything else of a job file, JobSpec last."""
    text = ""
    for name, message in root.messages.items():
        if name in CHOICES:
            continue
        field = next(f for f in root.fields if f.kind == name)
        text += "\n\n" + _class(name, "Spec", message, message.words or keys[field.name].words, keys, field.name + ".", (root,), "specs")
    text += "\n\n" + _class("JobSpec", "Spec", root, "A job, as a job file says it", keys, "", (), "specs")
    used = sorted(module for module in CHOICES.values() if f"{module}." in text)
    return _imports(text, "The parts of a job, without its samplers, schedules, priors, likelihoods, potentials and layers.", used)


def modules():
    """{file: text}, without a header."""
    specs, root = job_file.Specs(), job_file.parse_job_spec()
    keys = {key: Key(*rest) for key, *rest in job_file.rows(specs, root, specs.structs["JobSpec"])}
    made = {module + ".py": _choice_module(choice, module, keys, root) for choice, module in CHOICES.items()}
    return made | {"specs.py": _specs_module(keys, root)}

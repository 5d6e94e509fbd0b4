"""Writes chainfleet/aio.py: the methods of the synchronous classes as coroutines, from their signatures."""
import ast
import os

import job_file

PACKAGE = os.path.join("client", "python", "chainfleet")
SOURCES = {"Fleet": ("resources", "fleet"), "Job": ("job",), "Draws": ("draws",)}  # class: modules with its methods
PLAIN = ("close", "of_chains", "weights", "steps", "__getitem__", "__len__", "__repr__")  # these ask no server
WRAPPED = ("Fleet", "Job", "Draws")
HEAD = '''"""The same as `chainfleet`, for asyncio: `await fleet.sample(...)`, `async for state in job.watch()`.

    import chainfleet as cf

    async with await cf.aio.connect("localhost:7400") as fleet:
        job = await fleet.sample("mlp", data=(x, y), sampler=cf.EMCMC(), epochs=12)
        p = await job.predict(x_new)

Every method takes what the synchronous method of its name takes, and raises the same errors. Cancelling a task cancels
the call to the server, or ends the program that the method runs; a job that was created goes on.

64 calls of a process wait at a time, and further ones queue. `sample` and `wait` take a place until their job ends, so
with many jobs at once call `sample(..., wait=False)`.
"""
'''
BODY = '''

async def connect(
    address: str | Sequence[str] | None = None,
    token: str | None = None,
    timeout: float = 30.0,
    **options: str,
) -> Fleet:
    """See chainfleet.connect."""
    return Fleet(await call(_fleet.connect, address, token, timeout, **options))


async def local(**options: Any) -> Fleet:
    """See chainfleet.local."""
    return Fleet(await call(_local_fleet.local, **options))


async def down(data_dir: str | os.PathLike[str] | None = None) -> None:
    """See chainfleet.down."""
    await call(_local_fleet.down, data_dir)
'''
CLASS = '''

class {name}:
    """See chainfleet.{name}. sync: the synchronous object."""

    def __init__(self, sync: _{module}.{name}) -> None:
        self.sync = sync
'''
EXTRA = {"Fleet": '''
    async def __aenter__(self) -> Fleet:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()
''', "Job": '''
    @property
    def id(self) -> str:
        return self.sync.id
''', "Draws": '''
    @property
    def kind(self) -> str:
        return self.sync.kind

    @property
    def kinds(self) -> tuple[str, ...]:
        return self.sync.kinds

    def __aiter__(self) -> AsyncIterator[Draw]:
        return iterate(lambda: iter(self.sync))
'''}


def methods(tree, name):
    """Public methods, and those that PLAIN names, of a class of a module; its properties, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name in (name, "Resources"):
            yield from (item for item in node.body if isinstance(item, ast.FunctionDef)
                        and (not item.name.startswith("_") or item.name in PLAIN))


def arguments(function):
    """How a method passes its arguments on."""
    spec = function.args
    passed = [unwrapped(a) for a in spec.args[1:]] + ([f"*{spec.vararg.arg}"] if spec.vararg else [])
    passed += [f"{a.arg}={a.arg}" for a in spec.kwonlyargs] + ([f"**{spec.kwarg.arg}"] if spec.kwarg else [])
    return passed


def unwrapped(argument):
    """A Job among the arguments is the synchronous one behind it."""
    kinds = ast.unparse(argument.annotation).split(" | ")
    return f"{argument.arg}.sync if isinstance({argument.arg}, Job) else {argument.arg}" if "Job" in kinds else argument.arg


def method(function, home):
    """The text of one method."""
    signature, returns = ast.unparse(function.args), ast.unparse(function.returns)
    target, passed = f"self.sync.{function.name}", arguments(function)
    said = f'        """See chainfleet.{home}.{function.name}."""\n'
    if any(ast.unparse(d) == "property" for d in function.decorator_list):
        return f"    @property\n    def {function.name}(self) -> {returns}:\n        return {target}\n"
    if function.name in PLAIN:
        made = f"{target}({', '.join(passed)})"
        return f"    def {function.name}({signature}) -> {returns}:\n        return {made}\n".replace(
            f"return {made}", f"return Draws({made})" if returns == "Draws" else made if returns == "None" else f"return {made}")
    if returns.startswith("Iterator["):
        return (f"    def {function.name}({signature}) -> Async{returns}:\n{said}"
                f"        return iterate(lambda: {target}({', '.join(passed)}))\n")
    made = f"await call({', '.join([target, *passed])})"
    return f"    async def {function.name}({signature}) -> {returns}:\n{said}        return {f'{returns}({made})' if returns in WRAPPED else made}\n"


def names(tree):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def only_types(text):
    """Names that annotations alone use: they are strings when the module runs."""
    tree = ast.parse(text)
    annotations = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            spec = node.args
            places = [a for a in [*spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg] if a is not None and a.annotation]
            annotations |= {name for place in places for name in names(place.annotation)} | names(node.returns)
            for place in places:
                place.annotation = None
            node.returns = None
    return annotations - names(tree)


def homes(trees):
    """{name: (module, what is imported)} of all names that the sources import or define."""
    found = {"call": (".aio_calls", "call"), "iterate": (".aio_calls", "iterate"), "AsyncIterator": ("collections.abc", "AsyncIterator")}
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                found |= {a.asname or a.name: ("." * node.level + (node.module or ""), a.name) for a in node.names}
            elif isinstance(node, ast.Import):
                found |= {a.name: ("", a.name) for a in node.names}
        assigned = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets if isinstance(target, ast.Name)]
        found |= {target.id: (f".{module}", target.id) for target in assigned}
        found |= {node.name: (f".{module}", node.name) for node in tree.body if isinstance(node, ast.ClassDef)}
    return found | {f"_{module}": (".", f"{module} as _{module}") for module in (*trees, "local_fleet")}


def imports(found, wanted, indent=""):
    """Lines that import the names, the standard library first."""
    lines = {}
    for name in wanted & found.keys():
        lines.setdefault(found[name][0], set()).add(found[name][1])
    plain = [f"import {name}" for name in sorted(lines.pop("", ()))]
    written = [f"from {source} import {', '.join(sorted(what))}" for source, what in sorted(lines.items())]
    return "".join(f"{indent}{line}\n" for line in [*plain, *sorted(written, key=lambda line: line.startswith("from ."))])


def module():
    trees = {name: ast.parse(job_file.read(f"{PACKAGE}/{name}.py")) for group in SOURCES.values() for name in group}
    text = BODY
    for name, group in SOURCES.items():
        text += CLASS.format(name=name, module=group[-1]) + EXTRA[name]
        text += "".join("\n" + method(function, name) for one in group for function in methods(trees[one], name))
    found, types = homes(trees), only_types(text)
    run = names(ast.parse(text)) - types
    return (HEAD + "\nfrom __future__ import annotations\n\nfrom typing import TYPE_CHECKING\n" + imports(found, run - set(WRAPPED))
            + "\nif TYPE_CHECKING:\n" + imports(found, types - set(WRAPPED), "    ") + text)

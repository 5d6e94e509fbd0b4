"""deploy/kubernetes, deploy/systemd, deploy/docker and deploy/deb against the Kubernetes schemas, systemd's own check and the real binaries."""
import glob
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BIN = os.environ["CHAINFLEET_BIN"]
DEPS = os.environ.get("CHAINFLEET_DEPS") or os.path.expanduser("~/.cache/chainfleet")
sys.path[:0] = [os.path.join(ROOT, "tests", "support"), os.path.join(ROOT, "deploy"), os.path.join(DEPS, "kubernetes-validate-1.35.0")]
import image_packages  # noqa: E402

KUBERNETES_VERSIONS = ("1.28.0", "1.35.0")  # the oldest and the newest that the manifests are for
HIDDEN = {"ProtectHome": ("/home/", "/root/", "/run/user/"), "PrivateTmp": ("/tmp/", "/var/tmp/")}  # by settings of a unit
STAND_INS = r"""
deploy/deb/build.sh() { mkdir -p build/deb; }
docker() { [ "$1" = push ] || [ -f "$3" -a -d "$6" ]; }
helm() { [ -f "$6" ]; }
kubectl() {
  if [ "$1 $2" = "apply -f" ]; then cat "${3/#-//dev/stdin}"; echo; echo ---; else echo "$*" >> calls; fi
}
chainfleet() { "$BIN/chainfleet" "$@" --help | grep "^Usage: chainfleet $1 " > usage; }
"""
METRIC = re.compile(r"\bchainfleet_[a-z0-9_]+")


def read(*parts):
    with open(os.path.join(ROOT, *parts)) as f:
        return f.read()


def blocks(guide, language):
    """The fenced blocks of a language in a page of docs/guides."""
    return re.findall(rf"^```{language}\n(.*?)^```$", read("docs", "guides", f"{guide}.md"), re.M | re.S)


def flags_of(program):
    """Every --flag of a binary, with its default or ""."""
    return dict(re.findall(r"^ +(--[a-z-]+)(?: [A-Z]+(?:=(\S+))?)?", said(os.path.join(BIN, program), "--help"), re.M))


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def libraries(program):
    """The name that `program` gives itself, by the path where it is found."""
    named = re.findall(r"NEEDED.*\[(lib.*)\]", said("readelf", "-d", program))
    return {name: path for name, path in re.findall(r"(\S+) => (\S+)", said("ldd", program)) if name in named}


class Manifests:
    """The documents of deploy/kubernetes by kind and name, and the containers in them."""

    def __init__(self):
        import yaml
        self.rules = yaml.safe_load(read("deploy", "kubernetes", "adapter-rules.yaml"))["rules"]["external"]
        self.documents = []
        for path in sorted(glob.glob(os.path.join(ROOT, "deploy", "kubernetes", "*.yaml"))):
            if not path.endswith("adapter-rules.yaml"):
                with open(path) as f:
                    self.documents += list(yaml.safe_load_all(f))

    def get(self, kind, name):
        return next(d for d in self.documents if d["kind"] == kind and d["metadata"]["name"] == name)

    def pods(self):
        return [d["spec"]["template"] for d in self.documents if d["kind"] in ("Deployment", "StatefulSet")]

    def containers(self):
        return [container for pod in self.pods() for container in pod["spec"]["containers"]]

    def pod(self, part):
        return next(pod for pod in self.pods() if pod["metadata"]["labels"]["app.kubernetes.io/component"] == part)

    def mounted(self, part):
        """Names of the secrets that the pods of "server" or "worker" get as files, by the name of the volume."""
        return {volume["name"]: volume["secret"]["secretName"] for volume in self.pod(part)["spec"]["volumes"] if "secret" in volume}

    def variables(self, part):
        """Names of the secrets whose keys are variables of these pods."""
        container, = self.pod(part)["spec"]["containers"]
        return [source["secretRef"]["name"] for source in container["envFrom"]]

    def flag(self, container, name):
        return next(a.split("=", 1)[1] for a in container["args"] if a.startswith(name + "="))


class Kubernetes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.manifests = Manifests()
        cls.servers = cls.manifests.get("StatefulSet", "chainfleet-server")["spec"]
        cls.server, cls.worker = (spec["template"]["spec"]["containers"][0] for spec in
                                  (cls.servers, cls.manifests.get("Deployment", "chainfleet-worker")["spec"]))
        claim, = cls.servers["volumeClaimTemplates"]
        cls.audit, = [mount for mount in cls.server["volumeMounts"] if mount["name"] == claim["metadata"]["name"]]

    def test_every_document_fits_its_schema(self):
        import kubernetes_validate
        self.assertGreaterEqual(len(self.manifests.documents), 8)
        for document in self.manifests.documents:
            for version in KUBERNETES_VERSIONS:
                with self.subTest(kind=document["kind"], name=document["metadata"]["name"], version=version):
                    kubernetes_validate.validate(document, version, strict=True)

    def test_the_schemas_refuse_what_is_wrong(self):
        import kubernetes_validate
        document = self.manifests.get("HorizontalPodAutoscaler", "chainfleet-worker")
        for wrong in ({"maxReplicas": "many"}, {"maxReplica": 3}):
            with self.assertRaises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate({**document, "spec": {**document["spec"], **wrong}}, KUBERNETES_VERSIONS[-1], strict=True)

    def test_programs_and_flags_are_those_of_the_binaries(self):
        for container in self.manifests.containers():
            flags = flags_of(container["command"][0])
            for argument in container["args"]:
                self.assertIn(argument.split("=", 1)[0], flags, container["name"])

    def test_one_image_that_the_dockerfile_builds(self):
        for container in self.manifests.containers():
            self.assertIn(f"-t {container['image'].partition(':')[0]} ", read("deploy", "docker", "Dockerfile"))

    def test_the_commands_of_the_guide_fill_in_manifests_that_pods_can_run(self):
        """Stand-ins show documents that are applied, list other calls of kubectl, and look for the verb of chainfleet."""
        import kubernetes_validate
        import yaml
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.join(ROOT, "deploy"), os.path.join(folder, "deploy"))
            applied = subprocess.run(["bash", "-euo", "pipefail", "-c", STAND_INS + "".join(blocks("kubernetes", "sh"))], cwd=folder, check=True,
                                     stdout=subprocess.PIPE, text=True, env={**os.environ, "BIN": BIN}).stdout
            with open(os.path.join(folder, "calls")) as file:
                calls = file.read()
        documents = [document for document in yaml.safe_load_all(applied) if document]
        self.assertEqual(len(documents), len(self.manifests.documents))
        for document in documents:
            kubernetes_validate.validate(document, KUBERNETES_VERSIONS[-1], strict=True)
        found = {(d["kind"].lower(), d["metadata"]["name"]): d for d in documents}
        server, worker = (found[key]["spec"]["template"]["spec"]["containers"][0] for key in
                          (("statefulset", "chainfleet-server"), ("deployment", "chainfleet-worker")))
        self.assertEqual({server["image"], worker["image"]}, {"registry.example.org/chainfleet:1"})
        self.assertEqual(self.manifests.flag(worker, "--device"), "cpu")
        self.assertEqual(list(worker["resources"]["limits"]), ["memory"])
        secrets = [found["secret", name]["stringData"] for name in ("chainfleet-server", "chainfleet-worker")]
        kept = self.manifests.get("Secret", "chainfleet-server")["stringData"].items() & secrets[0].items()
        self.assertEqual(kept, set(), "the guide leaves nothing of the example")
        self.assertEqual(secrets[0]["CHAINFLEET_WORKER_TOKEN"], secrets[1]["CHAINFLEET_WORKER_TOKEN"])
        tokens = [value for key, document in found.items() if key[0] == "secret"
                  for name, value in document["stringData"].items() if name.endswith("_TOKEN")]
        self.assertEqual((len(tokens), len(set(tokens))), (5, 4), "the worker's token is in two secrets, and no other")
        for token in tokens:
            self.assertRegex(token, "^[0-9a-f]{32}$")
        made = re.findall(r"create secret generic (\S+)", calls)
        self.assertEqual({*self.manifests.mounted("server").values(), *self.manifests.mounted("worker").values()}, set(made))
        found |= {("secret", name): None for name in made}
        named = re.findall(r"\b(statefulset|deployment|secret|hpa) (?:generic )?([a-z-]+)", calls)
        self.assertGreater(len(named), 7)
        for kind, name in named:
            self.assertIn((kind.replace("hpa", "horizontalpodautoscaler"), name), found)
        self.assertEqual(re.findall(r" (server|worker)=registry", calls), [server["name"], worker["name"]])
        self.assertEqual([path for path in re.findall(r"deploy/\S+", calls) if not os.path.exists(os.path.join(ROOT, path))], [])

    def test_prometheus_takes_the_scrape_jobs_of_the_guide(self):
        """They keep the pods of the manifests, at their metrics port, send the token that the pods have, and expect a name that the
        pods' certificate has."""
        import yaml
        text, = blocks("kubernetes", "yaml")
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            # Debian's Prometheus is built without the search for pods.
            jobs = re.sub("(?<=_file: )[^,}]+", file.name, text)
            jobs = jobs.replace("kubernetes_sd_configs: [{role: pod}]", "static_configs: [{targets: ['pod:1']}]")
            file.write("scrape_configs:\n" + jobs)
            file.flush()
            said("promtool", "check", "config", file.name)
        kept = [rule["regex"] for job in yaml.safe_load(text) for rule in job["relabel_configs"] if rule.get("action") == "keep"]
        typed = "".join(blocks("kubernetes", "sh"))
        issued = {name: re.findall(r"--host (\S+)", hosts) for name, hosts in re.findall(r"^chainfleet pki issue (\S+) (.*)$", typed, re.M)}
        certificates = dict(re.findall(r"create secret generic (\S+) --from-file tls\.crt=pki/(\S+)\.crt --from-file tls\.key=pki/\2\.key ", typed))
        for job, part in zip(yaml.safe_load(text), ("server", "worker"), strict=True):
            secret, key = job["authorization"]["credentials_file"].split("/")[-2:]
            self.assertIn(secret, self.manifests.variables(part))
            self.assertEqual([key], list(self.manifests.get("Secret", secret)["stringData"]), "Prometheus gets nothing but the token")
            self.assertEqual(job["scheme"], "https")
            self.assertIn(job["tls_config"]["server_name"], issued[certificates[self.manifests.mounted(part)["tls"]]])
            configmap, file = job["tls_config"]["ca_file"].split("/")[-2:]
            self.assertIn(f"create configmap {configmap} --namespace monitoring --from-file pki/{file}\n", typed)
        labels = [pod["metadata"]["labels"] for pod in self.manifests.pods()]
        self.assertEqual(sorted(kept), sorted([";".join(pod.values()) for pod in labels] + ["metrics"] * len(labels)))

    def test_ports_are_those_that_the_programs_listen_on(self):
        ports = {port["name"]: port["containerPort"] for port in self.server["ports"]}
        defaults = flags_of("chainfleet-server")
        for name, flag in (("grpc", "--listen"), ("metrics", "--metrics-listen"), ("http", "--http-listen")):
            self.assertEqual(self.manifests.flag(self.server, flag), f"0.0.0.0:{ports[name]}")
            self.assertTrue(defaults[flag].endswith(f":{ports[name]}"), defaults[flag])
        service = self.manifests.get("Service", self.servers["serviceName"])
        self.assertEqual({port["name"]: port["port"] for port in service["spec"]["ports"]}, ports)
        self.assertEqual(service["spec"]["clusterIP"], "None", "each coordinator has a name of its own")
        name = "{}." + f"{service['metadata']['name']}:{ports['grpc']}"
        self.assertEqual(self.manifests.flag(self.server, "--advertise"), name.format("$(POD_NAME)"))
        self.assertEqual(self.manifests.flag(self.worker, "--server"),
                         ",".join(name.format(f"chainfleet-server-{i}") for i in range(self.servers["replicas"])))
        self.assertEqual(self.worker["ports"], [{"name": "metrics", "containerPort": int(self.manifests.flag(self.worker, "--metrics-port"))}])
        for pod in self.manifests.pods():
            container = pod["spec"]["containers"][0]
            named = {port["name"] for port in container["ports"]}
            for probe in (value for key, value in container.items() if key.endswith("Probe")):
                for way in ("tcpSocket", "httpGet"):
                    self.assertIn(probe.get(way, {"port": "metrics"})["port"], named)

    def test_certificates_and_keys_are_in_mounted_secrets(self):
        for part, flags in (("server", ("--tls", "--metrics-tls")), ("worker", ("--metrics-tls",))):
            container, = self.manifests.pod(part)["spec"]["containers"]
            folder, = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "tls"]
            for flag in flags:
                for kind, file in (("cert", "tls.crt"), ("key", "tls.key")):
                    self.assertEqual(self.manifests.flag(container, f"{flag}-{kind}"), f"{folder}/{file}")
        self.assertIn({"name": "CHAINFLEET_CA_FILE", "value": f"{folder}/ca.crt"}, self.worker["env"])

    def test_pods_see_only_the_secrets_of_their_role(self):
        seen = {part: {*self.manifests.variables(part), *self.manifests.mounted(part).values()} for part in ("server", "worker")}
        self.assertEqual(seen, {"server": {"chainfleet-server", "chainfleet-metrics", "chainfleet-tls", "chainfleet-authority"},
                                "worker": {"chainfleet-worker", "chainfleet-worker-metrics", "chainfleet-worker-tls"}})
        self.assertEqual(set(self.manifests.get("Secret", "chainfleet-worker")["stringData"]), {"CHAINFLEET_WORKER_TOKEN"})
        for pod in self.manifests.pods():
            container, = pod["spec"]["containers"]
            self.assertNotIn("initContainers", pod["spec"])
            self.assertNotIn("secretKeyRef", json.dumps([container, pod["spec"]["volumes"]]))
            self.assertNotIn("projected", json.dumps(pod["spec"]["volumes"]))

    def test_the_node_of_a_leader_can_be_drained(self):
        """A standby must count as ready: of two coordinators the budget lets one go only if both are."""
        budget = self.manifests.get("PodDisruptionBudget", "chainfleet-server")["spec"]
        readiness = self.server["readinessProbe"]
        ready = 1 if "grpc" in readiness else self.servers["replicas"]  # the health service of a standby says NOT_SERVING
        self.assertGreaterEqual(ready - (self.servers["replicas"] - budget["maxUnavailable"]), 1)

    def test_chains_are_spread_over_nodes(self):
        sources = {variable["name"]: variable["valueFrom"]["fieldRef"]["fieldPath"] for variable in self.worker["env"] if "valueFrom" in variable}
        self.assertEqual(sources[self.manifests.flag(self.worker, "--host").strip("$()")], "spec.nodeName")

    def test_references_lead_somewhere(self):
        secrets = {d["metadata"]["name"] for d in self.manifests.documents if d["kind"] == "Secret"}
        for container in self.manifests.containers():
            for source in container["envFrom"]:
                self.assertIn(source["secretRef"]["name"], secrets)
        labels = [pod["metadata"]["labels"] for pod in self.manifests.pods()]
        for document in self.manifests.documents:
            selector = document.get("spec", {}).get("selector")
            if selector:
                self.assertIn(selector.get("matchLabels", selector), labels)
        scaled = self.manifests.get("HorizontalPodAutoscaler", "chainfleet-worker")["spec"]["scaleTargetRef"]
        self.manifests.get(scaled["kind"], scaled["name"])

    def test_secrets_hold_what_the_programs_read(self):
        for name in ("server", "worker"):
            with open(os.path.join(BIN, f"chainfleet-{name}"), "rb") as f:
                program = f.read()
            for variable in (key for secret in self.manifests.variables(name) for key in self.manifests.get("Secret", secret)["stringData"]):
                self.assertIn(variable.encode(), program, f"chainfleet-{name} never reads {variable}")

    def test_pods_have_no_rights_that_they_do_not_need(self):
        """The profile `restricted` of Kubernetes, and a root file system that nobody writes."""
        for pod in self.manifests.pods():
            self.assertIs(pod["spec"]["automountServiceAccountToken"], False)
            self.assertTrue(pod["spec"]["securityContext"]["runAsNonRoot"])
            self.assertEqual(pod["spec"]["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        for container in self.manifests.containers():
            self.assertEqual(container["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                            "capabilities": {"drop": ["ALL"]}})
            written = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
            folders = {argument.split("=")[1] for argument in container["args"] if re.match("--(data|cache)-dir=", argument)}
            self.assertEqual(written - {self.audit["mountPath"]}, folders)

    def test_the_audit_log_outlives_a_pod(self):
        """A server continues the log if only the mounted part of its data directory is left."""
        import fleet as fleets
        self.assertIn("subPath", self.audit, "the root of a volume may have lost+found")
        fleet = fleets.Fleet(workers=0)
        self.addCleanup(fleet.close)
        fleet.up()
        fleet.submit(fleets.walk())
        fleet.kill("server")
        kept = os.path.relpath(self.audit["mountPath"], self.manifests.flag(self.server, "--data-dir"))
        with tempfile.TemporaryDirectory() as volume:
            shutil.move(fleet.path(kept), volume)
            shutil.rmtree(fleet.folder)
            shutil.copytree(os.path.join(volume, kept), fleet.path(kept))
        fleet.up()
        fleet.submit(fleets.walk())
        self.assertIn("lines 1 to 2 are as they were written", fleet.run("audit", "--verify", check=True).stdout)

    def test_the_network_policies_let_in_what_the_pods_listen_on_and_workers_reach_the_servers(self):
        for name, pod in zip(("server", "worker"), self.manifests.pods(), strict=True):
            policy = self.manifests.get("NetworkPolicy", f"chainfleet-{name}")["spec"]
            self.assertEqual(policy["podSelector"]["matchLabels"], pod["metadata"]["labels"])
            let_in = {port["port"]: rule["from"] for rule in policy["ingress"] for port in rule["ports"]}
            self.assertEqual(set(let_in), {port["name"] for port in pod["spec"]["containers"][0]["ports"]})
            reader, = let_in["metrics"]  # pods with the first label in namespaces with the second
            for selector in ("podSelector", "namespaceSelector"):
                (label, value), = reader[selector]["matchLabels"].items()
                self.assertIn(f"`{label}={value}`", read("docs", "guides", "kubernetes.md"))
            self.assertIn(f"\nkubectl label namespace monitoring {label}={value}\n", read("docs", "guides", "kubernetes.md"))
        to_servers, = [rule for rule in policy["egress"] if "to" in rule]
        self.assertEqual(to_servers["to"][0]["podSelector"]["matchLabels"], self.servers["template"]["metadata"]["labels"])

    def test_the_worker_has_longer_to_end_than_its_drain_takes(self):
        seconds = int(re.search(r"kDrainDeadline = absl::Seconds\((\d+)\)", read("core", "base", "limits.h")).group(1))
        spec = self.manifests.get("Deployment", "chainfleet-worker")["spec"]["template"]["spec"]
        self.assertGreater(spec["terminationGracePeriodSeconds"], seconds)

    def test_the_scaler_goes_by_a_metric_that_the_rule_makes(self):
        external = self.manifests.get("HorizontalPodAutoscaler", "chainfleet-worker")["spec"]["metrics"][0]["external"]
        rule = next(r for r in self.manifests.rules if r["name"]["as"] == external["metric"]["name"])
        self.assertIn(rule["seriesQuery"], METRIC.findall(rule["metricsQuery"]))
        self.assertEqual(external["target"]["averageValue"], self.manifests.flag(self.worker, "--chain-slots"))

    def test_metrics_and_probes_are_served_by_a_real_server(self):
        """Kubernetes checks no certificate and has none, also where callers need one. Prometheus checks it."""
        import started_fleet
        import urllib.request
        fleet = started_fleet.StartedFleet()
        self.addCleanup(fleet.close)
        fleet.pki("init")
        fleet.pki("issue", "server", "--host", "127.0.0.1")
        authority, certificate, key = (fleet.path("pki", name) for name in ("ca.crt", "server.crt", "server.key"))
        fleet.environment |= {"CHAINFLEET_CA_FILE": authority, "CHAINFLEET_CERT_FILE": certificate, "CHAINFLEET_KEY_FILE": key}
        fleet.start_server(0, "--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority,
                           "--metrics-tls-cert", certificate, "--metrics-tls-key", key)
        fleet.wait_until_served()

        def get(path, context):
            with urllib.request.urlopen(f"https://{fleet.metrics_addresses[0]}{path}", timeout=20, context=context) as reply:
                return reply.status, reply.read().decode()

        scrape = get("/metrics", ssl.create_default_context(cafile=authority))[1]
        for rule in self.manifests.rules:
            for name in METRIC.findall(rule["metricsQuery"]):
                self.assertTrue(f"| `{name}` | server |" in read("docs", "reference", "metrics.md"), f"{name} is not the server's in docs/reference/metrics.md")
            for series in re.findall(r"chainfleet_[a-z_]+(?:{[^}]*})?", rule["metricsQuery"]):
                self.assertTrue(f"\n{series} " in scrape, f"the server does not serve {series}")
        probe = self.server["livenessProbe"]["httpGet"]
        self.assertEqual(probe, {"path": "/healthz", "port": "metrics", "scheme": "HTTPS"})
        self.assertEqual(self.worker["livenessProbe"]["httpGet"], probe)
        unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        self.assertEqual(get(probe["path"], unchecked)[0], 200)


class Systemd(unittest.TestCase):
    UNITS = sorted(glob.glob(os.path.join(ROOT, "deploy", "systemd", "*.service")))

    def test_a_stop_signals_only_the_worker_and_not_its_modules(self):
        self.assertIn("\nKillMode=mixed\n", read("deploy", "systemd", "chainfleet-worker@.service"))

    def test_units_start_programs_with_flags_that_they_have(self):
        self.assertEqual(len(self.UNITS), 2)
        for unit in self.UNITS:
            path, *arguments = re.search(r"^ExecStart=(.*)$", read(unit), re.M).group(1).split()
            flags = flags_of(os.path.basename(path))
            for argument in arguments:
                if argument.startswith("--"):
                    self.assertIn(argument, flags, unit)

    def test_programs_built_and_installed_as_documented_see_their_libraries(self):
        section = read("docs", "guides", "running.md").partition("\n## systemd\n")[2].partition("\n## ")[0]
        deps = re.search(r"export CHAINFLEET_DEPS=(\S+)", section).group(1)
        programs, folder = re.search(r"install -m 755 (.*) (\S+)$", section, re.M).groups()
        for unit in self.UNITS:
            installed = re.search(r"^ExecStart=(\S+)", read(unit), re.M).group(1)
            self.assertIn(installed, [os.path.join(folder, os.path.basename(program)) for program in programs.split()])
            hidden = tuple(path for setting, paths in HIDDEN.items() if f"\n{setting}=yes\n" in read(unit) for path in paths)
            for library, path in libraries(os.path.join(BIN, os.path.basename(installed))).items():
                place = path.replace(DEPS, deps) if path.startswith(DEPS) else path
                self.assertFalse(place.startswith(hidden), f"{unit} hides {library} in {place}")

    def test_each_instance_has_a_cache_of_its_own(self):
        """DynamicUser makes each a user of its own, and systemd gives the folder to the one that starts last."""
        unit = read("deploy", "systemd", "chainfleet-worker@.service")
        folder = re.search(r"^CacheDirectory=(.*)$", unit, re.M).group(1)
        self.assertIn("%i", folder)
        self.assertIn(f"--cache-dir %C/{folder}\n", unit)

    def test_time_slices_are_the_only_resources_that_may_be_set(self):
        for unit in self.UNITS:
            with self.subTest(unit):
                allowed = re.findall(r"^SystemCallFilter=(.*)$", read(unit), re.M)
                filters = ["seccomp"] if "worker" in unit else []  # which only takes calls away
                self.assertEqual(allowed, ["@system-service", "~@privileged @resources", "sched_setattr", *filters])
                self.assertIn("\nCapabilityBoundingSet=\n", read(unit))

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_units_expose_little(self):
        for unit in self.UNITS:
            done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=19", "--no-pager", unit], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)  # above 1.9 it is another

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_systemd_finds_nothing_to_say(self):
        with tempfile.TemporaryDirectory() as folder:
            copies = []
            for unit in self.UNITS:
                path = os.path.join(folder, os.path.basename(unit))
                with open(path, "w") as f:
                    f.write(re.sub(r"^#(?=\w+=)", "", read(unit), flags=re.M).replace("/usr/bin/", BIN + "/"))  # with all that it offers
                instances = [path.replace("@.", f"@{device}.") for device in ("cpu", "cuda:0")] if "@." in path else [path]
                copies += [f"{path}:{os.path.basename(instance)}" for instance in instances]  # FILE:NAME
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *copies], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class BillOfMaterials(unittest.TestCase):
    def test_it_names_the_files_of_a_release_and_every_library_of_the_programs(self):
        programs = [os.path.join(BIN, name) for name in ("chainfleet", "chainfleet-server", "chainfleet-worker")]
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(os.path.join(ROOT, "README.md"), folder)
            for _ in range(2):  # the second time it finds its own files there
                said(sys.executable, "-B", os.path.join(ROOT, "deploy", "sbom.py"), folder, *programs)
                subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=folder, check=True)
            with open(os.path.join(folder, "sbom.cdx.json")) as f:
                bill = json.load(f)
            self.assertEqual([line.split()[1] for line in read(folder, "SHA256SUMS").splitlines()], ["README.md", "sbom.cdx.json"])
        self.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"))
        refs = [component["bom-ref"] for component in bill["components"]]
        self.assertEqual(len(refs), len(set(refs)))
        versions = {component["name"]: component["version"] for component in bill["components"] if component["type"] == "library"}
        for name in ("libgrpc++1.51", "libsqlite3-0", "libsodium23", "libseccomp2", "libabsl-dev", "libsodium-dev", "nlohmann-json3-dev", "libjs-chart.js"):
            self.assertEqual(versions[name], said("dpkg-query", "-W", "-f", "${Version}", name))
        self.assertIn("pkg:deb/debian/libgrpc%2B%2B1.51@", "".join(refs))
        self.assertIn("torch", versions)
        depended = bill["dependencies"][0]["dependsOn"]
        self.assertEqual(depended, [c["bom-ref"] for c in bill["components"] if c["type"] == "library"])


class ManPages(unittest.TestCase):
    def test_each_command_has_a_page_with_its_flags_and_verbs(self):
        with tempfile.TemporaryDirectory() as folder:
            said(sys.executable, "-B", os.path.join(ROOT, "deploy", "deb", "man_pages.py"), "1.2.3", folder)
            written = {name: read(folder, name) for name in os.listdir(folder)}
        commands = re.findall(r"^## (chainfleet.*)$", read("docs", "reference", "cli.md"), re.M)
        self.assertEqual(set(written), {command.replace(" ", "-") + ".1" for command in commands})
        for command in commands:
            page = written[command.replace(" ", "-") + ".1"]
            self.assertIn('"chainfleet 1.2.3"', page)
            program, *verbs = command.split()
            listed = re.findall(r"^  ([-a-z][^\s]*?),?(?= |$)", said(os.path.join(BIN, program), *verbs, "--help").partition("Examples:")[0], re.M)
            self.assertIn("-h,--help", listed)
            for name in listed:
                self.assertRegex(page, rf"(?m)^\\fB{re.escape(name.replace('-', chr(92) + '-'))}\b", command)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_groff_finds_nothing_to_say(self):
        with tempfile.TemporaryDirectory() as folder:
            said(sys.executable, "-B", os.path.join(ROOT, "deploy", "deb", "man_pages.py"), "1.2.3", folder)
            pages = sorted(glob.glob(os.path.join(folder, "*.1")))
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", *pages], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class Docker(unittest.TestCase):
    """tests/run_image.sh builds the image and runs a job in it."""

    def test_it_is_made_of_the_packages_where_their_script_puts_them(self):
        text = read("deploy", "docker", "Dockerfile")
        script, folder = re.search(r"^#   (deploy/\S+\.sh)\n#   docker build .* (\S+)$", text, re.M).groups()
        self.assertTrue(os.access(os.path.join(ROOT, script), os.X_OK), script)
        self.assertIn(f"default FOLDER: {folder}\n", read(script))

    def last_stage(self):
        """The lines of the Dockerfile that the image is made by, continued ones joined."""
        return re.split(r"^FROM ", read("deploy", "docker", "Dockerfile").replace("\\\n", " "), flags=re.M)[-1]

    def test_its_packages_have_no_compiler_headers_or_build_tools(self):
        """Those that the Dockerfile names, those of the programs' libraries, and all that these depend on."""
        import sbom
        stage = self.last_stage()
        self.assertTrue(stage.startswith("debian:12-slim\n"), stage)
        self.assertEqual(re.findall(r"^(?:COPY|ADD)\b.*", stage, re.M), [], "files that no package owns")
        words, = re.findall(r"\bapt-get install ([^&;|]*)", stage)  # the only command that installs
        self.assertEqual(len(re.findall(r"(?<=\s)(?:install|pip|curl|wget|dpkg)(?=\s)", stage)), 1)
        self.assertIn("--no-install-recommends", words.split())
        named = {word for word in words.split() if not word.startswith("-")}
        self.assertIn("/packages/*.deb", named)
        # Debian's tool finds what the packages depend on by the libraries of the programs, and nothing is added.
        self.assertNotRegex(read("deploy", "deb", "cpack.cmake"), "DEBIAN_PACKAGE_(PRE_)?(DEPENDS|RECOMMENDS)")
        programs = [os.path.join(BIN, name) for name in ("chainfleet", "chainfleet-server", "chainfleet-worker")]
        needed = sbom.packages_of(programs) | named - {"/packages/*.deb"}
        without = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]
        found = re.findall(r"^\w\S*", said("apt-cache", "depends", "--recurse", "--installed", *without, *sorted(needed)), re.M)
        self.assertLess({*needed, "libc6", "libseccomp2"}, set(found))
        self.assertEqual(image_packages.only_for_builds(found), [])

    def test_packages_that_only_builds_need_are_noticed(self):
        needless = ["binutils-common", "clang-14", "cmake", "g++", "gcc-12", "git", "libc6-dev", "libprotobuf-dev", "make", "python3"]
        self.assertEqual(image_packages.only_for_builds([*needless, "gcc-12-base", "libgcc-s1", "libprotoc32", "ca-certificates"]), needless)

    def test_its_programs_do_not_run_as_root(self):
        *_, user = re.findall(r"^USER (\S+)$", self.last_stage(), re.M)
        self.assertRegex(user, r"^[1-9]\d*$", "Kubernetes tells by a number that it is not root")

    def test_its_user_is_that_of_the_pods(self):
        user, = set(re.findall(r"(?:^USER |--uid )(\d+)", read("deploy", "docker", "Dockerfile"), re.M))
        for pod in Manifests().pods():
            self.assertEqual(pod["spec"]["securityContext"]["runAsUser"], int(user))



if __name__ == "__main__":
    unittest.main(verbosity=2)

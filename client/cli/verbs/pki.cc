#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/verbs/verbs.h"
#include "core/tls/authority.h"

namespace chainfleet {
namespace {

struct PkiOptions {
  std::string folder = "pki", name;
  std::vector<std::string> hosts;
  int64_t days = 0;
};

Validity ValidFor(const Invocation& run, int64_t days) {
  const absl::Time now = run.clock.Wall();
  // A margin for hosts whose clocks are behind.
  return {now - absl::Minutes(5), now + absl::Hours(24 * days)};
}

// Adds a verb whose certificates are valid for `days` days by default.
CLI::App* AddPkiVerb(CLI::App* group, Invocation* run, const std::string& name, const std::string& description,
                     const std::string& examples, int64_t days,
                     const std::function<absl::Status(const PkiOptions&)>& body,
                     const std::shared_ptr<PkiOptions>& options) {
  options->days = days;
  CLI::App* verb = AddVerb(group, run, name, description, examples, [=] { return body(*options); });
  verb->add_option("--folder", options->folder, "Folder of the authority")->capture_default_str();
  verb->add_option("--days", options->days, "Days until the certificate expires")
      ->check(CLI::Range(1, 36'500))
      ->capture_default_str();
  return verb;
}

absl::Status ShowWritten(const absl::StatusOr<std::string>& certificate) {
  if (certificate.ok()) std::cout << "wrote " << *certificate << "\n";
  return certificate.status();
}

}  // namespace

void AddPki(CLI::App* program, Invocation* run) {
  CLI::App* group =
      AddGroup(program, "pki", "Make certificates for TLS, for fleets without their own certificate authority");
  AddPkiVerb(
      group, run, "init", "Make an authority; keep its folder private", "  chainfleet pki init --folder ~/fleet-pki",
      3650,
      [run](const PkiOptions& options) {
        CHAINFLEET_RETURN_IF_ERROR(InitAuthority(options.folder, ValidFor(*run, options.days)));
        std::cout << "wrote " << options.folder << "/ca.crt, which clients and workers need, and " << options.folder
                  << "/ca.key, which signs certificates: keep it secret\n";
        return absl::OkStatus();
      },
      std::make_shared<PkiOptions>());
  const auto issued = std::make_shared<PkiOptions>();
  CLI::App* issue = AddPkiVerb(
      group, run, "issue", "Issue a certificate for a server, a worker or a client",
      "  chainfleet pki issue server --host fleet.example.org --host 10.0.0.5\n"
      "  chainfleet-server --tls-cert pki/server.crt --tls-key pki/server.key ...\n"
      "  CHAINFLEET_CA_FILE=pki/ca.crt chainfleet get jobs --address fleet.example.org:7400\n"
      "  chainfleet pki issue worker-1          # for a server with --tls-client-ca",
      365,
      [run](const PkiOptions& options) {
        return ShowWritten(IssueCertificate(options.folder, options.name, options.hosts, ValidFor(*run, options.days)));
      },
      issued);
  issue->add_option("NAME", issued->name, "Name in the certificate; its files have the same name")->required();
  issue->add_option("--host", issued->hosts, "DNS name or IP address at which the holder is reached, repeatable")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  const auto renewed = std::make_shared<PkiOptions>();
  CLI::App* renew = AddPkiVerb(
      group, run, "renew", "Replace a certificate by one with the same key and hosts; servers load it by themselves",
      "  chainfleet pki renew server", 365,
      [run](const PkiOptions& options) {
        return ShowWritten(RenewCertificate(options.folder, options.name, ValidFor(*run, options.days)));
      },
      renewed);
  renew->add_option("NAME", renewed->name, "Name of the holder")->required();
}

}  // namespace chainfleet

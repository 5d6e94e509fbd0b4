#include <algorithm>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/table.h"
#include "core/store/audit_log/audit_chain.h"
#include "nlohmann/json.hpp"

namespace chainfleet {
namespace {

// Says what the call was about, and how it failed: "job=moons-a1b2c3 intent=DELETE", "NOT_ALLOWED".
std::string About(const nlohmann::ordered_json& line) {
  static const std::vector<std::string> kElsewhere = {"seq",    "at",   "principal", "tenant", "peer",
                                                      "method", "code", "request",   "error",  "previous"};
  std::string about;
  for (const auto& [key, value] : line.items()) {
    if (std::ranges::find(kElsewhere, key) != kElsewhere.end()) continue;
    absl::StrAppend(&about, about.empty() ? "" : " ", key == "reason" ? "" : key + "=",
                    value.is_string() ? value.get<std::string>() : value.dump());
  }
  return about;
}

Table AuditTable(const std::vector<std::string>& lines) {
  Table table({"TIME", "TOKEN", "TENANT", "PEER", "CALL", "=CODE", "ABOUT"});
  for (const std::string& text : lines) {
    const auto line = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_object()) continue;
    const auto cell = [&](const char* key) {
      const auto found = line.find(key);
      return found != line.end() && found->is_string() ? found->get<std::string>() : "";
    };
    const std::string method = cell("method");
    table.AddRow({cell("at").substr(0, 19), cell("principal"), cell("tenant"), cell("peer"),
                  method.substr(method.rfind('/') + 1), cell("code"), About(line)});
  }
  return table;
}

absl::Status Print(Invocation* run, bool raw) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  std::vector<std::string> rows;
  CHAINFLEET_RETURN_IF_ERROR(client.ReadAudit([&](const std::string& line) {
    if (raw) {
      std::cout << line << "\n";
    } else {
      rows.push_back(line);
    }
    return absl::OkStatus();
  }));
  if (!raw) std::cout << AuditTable(rows).Render();
  return absl::OkStatus();
}

absl::Status Verify(Invocation* run) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  AuditChain chain;
  CHAINFLEET_RETURN_IF_ERROR(client.ReadAudit([&](const std::string& line) { return chain.Follow(line); }));
  std::cout << "lines " << chain.first() << " to " << chain.last()
            << " are as they were written\nSHA-256 of the last: " << chain.digest() << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddAudit(CLI::App* program, Invocation* run) {
  struct Options {
    bool raw = false, verify = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* audit =
      AddVerb(program, run, "audit", "Print the audit log: who changed what, and who was refused; for admins",
              "  chainfleet audit | tail\n"
              "  chainfleet audit --raw | jq 'select(.tenant == \"vision\")'\n"
              "  chainfleet audit --verify",
              [=] { return options->verify ? Verify(run) : Print(run, options->raw); });
  audit->add_flag("--raw", options->raw, "Print the lines as they are: JSON objects");
  audit->add_flag(
      "--verify", options->verify,
      "Check that no line was changed, inserted or removed, and print the digest of the last one; for admins of "
      "the fleet, who see all lines");
  AddServerOptions(audit, run);
}

}  // namespace chainfleet

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/table.h"
#include "core/base/file_system.h"
#include "core/store/audit_log/audit_chain.h"
#include "core/store/audit_log/audit_log.h"
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
                  method.starts_with('/') ? method.substr(method.rfind('/') + 1) : method, cell("code"), About(line)});
  }
  return table;
}

using OnAuditLine = std::function<absl::Status(const std::string& line)>;

// Passes on the lines of the server, or those of `folder` unless it is empty, oldest first.
absl::Status ReadLines(Invocation* run, const std::string& folder, const OnAuditLine& on_line) {
  if (folder.empty()) {
    CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
    return client.ReadAudit(on_line);
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const auto files, ListAuditFiles(folder));
  if (files.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no audit log in ", folder, ": give the folder `audit` of a data directory, or a copy of it"));
  }
  for (const auto& [number, file] : files) {
    const std::string path = absl::StrCat(folder, "/", file);
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t bytes, RealFileSystem()->SizeBytes(path));
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string text, RealFileSystem()->ReadRange(path, 0, bytes));
    std::vector<std::string> lines = absl::StrSplit(text, '\n');
    lines.pop_back();  // empty, or a line that the server is still writing
    for (const std::string& line : lines) CHAINFLEET_RETURN_IF_ERROR(on_line(line));
  }
  return absl::OkStatus();
}

absl::Status Print(Invocation* run, const std::string& folder, bool raw) {
  std::vector<std::string> rows;
  CHAINFLEET_RETURN_IF_ERROR(ReadLines(run, folder, [&](const std::string& line) {
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

absl::Status Verify(Invocation* run, const std::string& folder) {
  AuditChain chain;
  CHAINFLEET_RETURN_IF_ERROR(ReadLines(run, folder, [&](const std::string& line) { return chain.Follow(line); }));
  std::cout << "lines " << chain.first() << " to " << chain.last()
            << " are as they were written\nSHA-256 of the last: " << chain.digest() << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddAudit(CLI::App* program, Invocation* run) {
  struct Options {
    bool raw = false, verify = false;
    std::string folder;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* audit = AddVerb(
      program, run, "audit", "Print the audit log: who changed what, and who was refused; for admins",
      "  chainfleet audit | tail\n"
      "  chainfleet audit --raw | jq 'select(.tenant == \"vision\")'\n"
      "  chainfleet audit --verify\n"
      "  chainfleet audit --folder /var/lib/chainfleet/audit --verify",
      [=] { return options->verify ? Verify(run, options->folder) : Print(run, options->folder, options->raw); });
  audit->add_flag("--raw", options->raw, "Print the lines as they are: JSON objects");
  audit->add_flag(
      "--verify", options->verify,
      "Check that no line was changed, inserted or removed, and print the digest of the last one; for admins of "
      "the fleet, who see all lines");
  audit
      ->add_option("--folder", options->folder,
                   "Read the log from the folder `audit` of a data directory, or from a copy, instead of from a server")
      ->check(CLI::ExistingDirectory);
  AddServerOptions(audit, run);
}

}  // namespace chainfleet

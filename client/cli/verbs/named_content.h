// Prints what users list by name. The verbs of data sets and models, which users upload, differ only in call and table.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/invocation.h"
#include "client/cli/terminal.h"
#include "client/cli/views/job_view.h"
#include "client/cli/views/resource_view.h"
#include "client/cli/views/table.h"
#include "core/base/escaped.h"
#include "core/domain/no_such.h"
#include "core/domain/tenant.h"

namespace chainfleet {

// Sends the content with the bytes sent on stderr, and prints the server's reply. `what` ("data set") appears in the
// line after an interrupt. `put` gets a function that reports the bytes sent so far.
template <typename Item, typename Put>
absl::Status PutNamed(Invocation* run, const std::string& what, const std::string& name,
                      Table (*table)(const std::vector<Item>&), const Put& put) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  LiveText text(stderr);
  ExitOnInterrupt(absl::StrCat("\ninterrupted: ", what, " ", name, " was not stored\n"));
  const absl::StatusOr<Item> item =
      put(&client, [&](int64_t bytes) { text.Show(absl::StrCat("sending ", name, ": ", FormatBytes(bytes))); });
  text.Clear();
  CHAINFLEET_RETURN_IF_ERROR(item.status());
  PrintOne(std::cout, run->format, *item, item->name(), [&] { return table({*item}).Render(); });
  if constexpr (requires { item->warnings(); }) {
    for (const std::string& warning : item->warnings()) std::cerr << "warning: " << Escaped(warning) << "\n";
  }
  return absl::OkStatus();
}

// Adds the verb that lets other tenants use what users upload. `noun`: "data set".
template <typename Item>
void AddShare(CLI::App* group, Invocation* run, const std::string& noun, Table (*table)(const std::vector<Item>&),
              absl::StatusOr<Item> (Client::*share)(const v1::ShareRequest&)) {
  struct Options {
    std::string name;
    std::vector<std::string> with;
    bool with_all = false, stop = false;
  };
  const auto options = std::make_shared<Options>();
  const std::string command = absl::StrCat("  chainfleet ", group->get_name(), " share mine ");
  CLI::App* verb =
      AddVerb(group, run, "share", absl::StrCat("Let other tenants use a ", noun, ": they name it OWNER/NAME"),
              absl::StrCat(command, "--with vision,speech\n", command, "--with-all\n", command, "--stop"), [=] {
                v1::ShareRequest request;
                request.set_name(options->name);
                request.mutable_tenants()->Add(options->with.begin(), options->with.end());
                if (options->with_all) request.add_tenants(kEveryTenant);
                request.set_stop(options->stop);
                CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
                CHAINFLEET_ASSIGN_OR_RETURN(const Item item, (client.*share)(request));
                PrintOne(*run->out, run->format, item, item.name(), [&] { return table({item}).Render(); });
                return absl::OkStatus();
              });
  verb->add_option("NAME", options->name, absl::StrCat("Name of the ", noun))->required();
  verb->add_option("--with", options->with, "Tenants, with commas between")->delimiter(',')->option_text("TENANTS");
  verb->add_flag("--with-all", options->with_all, "All tenants");
  verb->add_flag("--stop", options->stop,
                 "Stop sharing with the tenants of --with, or with all. Jobs that already use it go on");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

// `text` with coloured states if `run` prints to a terminal with colours. LiveText paints the views of `get -w`.
inline std::string Painted(const Invocation& run, std::string text) {
  return run.out == &std::cout && UseColor(stdout) ? PaintStates(std::move(text)) : text;
}

template <typename Item>
absl::Status PrintItems(Invocation* run, const std::string& key, const std::vector<Item>& items,
                        const std::function<Table(const std::vector<Item>&)>& table) {
  Listing listing{key, {}, {}, [&](size_t max_width, bool wide) {
                    return Painted(*run, table(items).Render({.max_width = max_width, .wide = wide}));
                  }};
  for (const Item& item : items) {
    listing.items.push_back(&item);
    listing.names.push_back(NameOf(item));
  }
  PrintList(*run->out, run->format, listing);
  return absl::OkStatus();
}

// A kind of resource: `aliases` is alias, and so on.
inline std::string Singular(const std::string& plural) {
  return plural.substr(0, plural.size() - (plural == "aliases" ? 2 : 1));
}

// Prints everything that `list` of the client returns, or only `name`.
template <typename Item>
absl::Status ListNamed(Invocation* run, const std::string& key, Table (*table)(const std::vector<Item>&),
                       absl::StatusOr<std::vector<Item>> (Client::*list)(), const std::string& name = "") {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<Item> items, (client.*list)());
  if (!name.empty()) {
    std::erase_if(items, [&](const Item& item) { return NameOf(item) != name; });
    if (items.empty()) return NoSuch(Singular(key), name);
  }
  return PrintItems<Item>(run, key, items, table);
}

}  // namespace chainfleet

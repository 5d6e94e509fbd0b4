// Named content that users upload and list: data sets and models. Their verbs differ only in the call and the table.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/invocation.h"
#include "client/cli/terminal.h"
#include "client/cli/views/table.h"

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
  return absl::OkStatus();
}

// Prints everything that `list` of the client returns.
template <typename Item>
absl::Status ListNamed(Invocation* run, const std::string& key, Table (*table)(const std::vector<Item>&),
                       absl::StatusOr<std::vector<Item>> (Client::*list)()) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<Item> items, (client.*list)());
  Listing listing{key, {}, {}, table(items).Render()};
  for (const Item& item : items) {
    listing.items.push_back(&item);
    listing.names.push_back(item.name());
  }
  PrintList(std::cout, run->format, listing);
  return absl::OkStatus();
}

}  // namespace chainfleet

// Templates for methods of Client that make one call, or one for each page. Only for client*.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "client/lib/client.h"
#include "core/wire/grpc_status.h"

namespace chainfleet {

inline constexpr absl::Duration kTransferTimeout = absl::Minutes(30);

template <typename Service>
std::unique_ptr<typename Service::Stub> Client::Stub() {
  return Service::NewStub(Channel());
}

// Retries as Repeat does, within the client's timeout.
template <typename Service, typename Request, typename Reply>
absl::StatusOr<Reply> Client::Call(grpc::Status (Service::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                                   const Request& request) {
  Reply reply;
  CHAINFLEET_RETURN_IF_ERROR(Repeat(options_.timeout, [&](grpc::ClientContext* context) {
    return FromGrpc(((*Stub<Service>()).*method)(context, request, &reply));
  }));
  return reply;
}

// Returns all pages of a list call.
template <typename Item, typename Request, typename FetchPage, typename ItemsOf>
absl::StatusOr<std::vector<Item>> AllPages(Request request, const FetchPage& fetch_page, const ItemsOf& items_of) {
  constexpr int32_t kPageSize = 500;
  std::vector<Item> all;
  request.set_page_size(kPageSize);
  do {
    auto page = fetch_page(request);
    if (!page.ok()) return page.status();
    for (auto& item : *items_of(*page)) all.push_back(std::move(item));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

}  // namespace chainfleet

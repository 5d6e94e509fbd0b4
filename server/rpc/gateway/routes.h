// The table of the HTTP port: which verb and path means which method.
#pragma once

#include <google/protobuf/descriptor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/rpc/gateway/translation.h"

namespace chainfleet {

struct Route {
  const char* verb;
  const char* path;    // a segment {FIELD} is a field of the method's request
  const char* method;  // full proto name
  std::unique_ptr<Translation> (*translate)();
};

std::span<const Route> Routes();

// True if the request is its body; else it is the query.
bool HasBody(const Route& route);

struct RouteMatch {
  const Route* route = nullptr;  // null: no route
  std::vector<std::pair<std::string, std::string>> fields;
  std::string verbs;  // those that the path takes, "GET, POST"; empty: there is no such path
};

// `path` as it was sent, percent-encoded. A literal segment goes before a field.
RouteMatch FindRoute(const std::string& verb, const std::string& path);

// REQUIRES: a route of the table.
const google::protobuf::MethodDescriptor& MethodOf(const Route& route);

// The message that path and query fill: the method's request, or the header of an upload.
const google::protobuf::Descriptor& RequestOf(const Route& route);

}  // namespace chainfleet

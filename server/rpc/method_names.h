// Finds the descriptor of a method by its gRPC path.
#pragma once

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <string>

namespace chainfleet {

// `path`: "/chainfleet.v1.JobService/GetJob". Null if there is no such method; clients may send any path.
inline const google::protobuf::MethodDescriptor* FindMethod(const char* path) {
  std::string name = path == nullptr ? "" : path;
  if (name.starts_with('/')) name.erase(0, 1);
  std::ranges::replace(name, '/', '.');
  return google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
}

inline bool IsOurs(const google::protobuf::MethodDescriptor* method) {
  return method != nullptr &&
         (method->file()->package() == "chainfleet.v1" || method->file()->package() == "inference");
}

}  // namespace chainfleet

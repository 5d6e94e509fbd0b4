// Finds the descriptor of a method by its gRPC path, and says what kind of method it is.
#pragma once

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <array>
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

inline bool IsOfWorkers(const google::protobuf::MethodDescriptor& method) {
  return method.service()->name() == "WorkerService";
}

// Changes that users make, and workers that join. Workers change something with every other call.
inline bool ChangesSomething(const google::protobuf::MethodDescriptor* method) {
  constexpr std::array kReads = {"Get", "List", "Watch", "Read", "Predict"};
  if (method == nullptr || method->file()->package() != "chainfleet.v1") return false;
  if (IsOfWorkers(*method)) return method->name() == "Join";
  return std::ranges::none_of(kReads, [&](const char* verb) { return method->name().starts_with(verb); });
}

}  // namespace chainfleet

// All methods of all services, from their descriptors, so that a test of every method needs no list of services.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor_database.h"

namespace chainfleet {

// The methods of the services of packages chainfleet.v1 and inference that this program has.
inline std::vector<const google::protobuf::MethodDescriptor*> ContractMethods() {
  using google::protobuf::DescriptorPool;
  std::vector<std::string> files;
  DescriptorPool::internal_generated_database()->FindAllFileNames(&files);
  std::ranges::sort(files);
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const std::string& name : files) {
    const auto* file = DescriptorPool::generated_pool()->FindFileByName(name);
    if (file == nullptr || (file->package() != "chainfleet.v1" && file->package() != "inference")) continue;
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) methods.push_back(file->service(s)->method(m));
    }
  }
  return methods;
}

// As in ":path" of a call.
inline std::string GrpcPath(const google::protobuf::MethodDescriptor& method) {
  return "/" + method.service()->full_name() + "/" + method.name();
}

// The least role that may call a method, by its GrpcPath. The verb with which a method's name begins says it, except
// for the methods in the list. A writer is a "user"; no role may make the calls of workers.
inline std::string LeastRole(const std::string& method) {
  static const std::map<std::string, std::string> kExceptions = {{"GetServerInfo", "predictor"},
                                                                 {"ModelStatistics", "reader"},
                                                                 {"RepositoryIndex", "reader"},
                                                                 {"DrainWorker", "operator"}};
  if (method.find("WorkerService") != std::string::npos) return "none";
  if (method.find("AccessService") != std::string::npos) return "admin";
  const std::string name = method.substr(method.rfind('/') + 1);
  if (const auto exception = kExceptions.find(name); exception != kExceptions.end()) return exception->second;
  for (const char* verb : {"Predict", "Model", "Server"}) {
    if (name.starts_with(verb)) return "predictor";
  }
  for (const char* verb : {"Get", "List", "Watch", "Read"}) {
    if (name.starts_with(verb)) return "reader";
  }
  return "user";
}

}  // namespace chainfleet

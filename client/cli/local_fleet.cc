#include "client/cli/local_fleet.h"

#include <cstdlib>
#include <filesystem>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/file_system.h"
#include "yaml-cpp/yaml.h"

namespace chainfleet {
namespace {

namespace fs = std::filesystem;

}  // namespace

absl::StatusOr<LocalFleet> LocalFleet::In(const std::string& data_folder) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return absl::InternalError(absl::StrCat("cannot read /proc/self/exe: ", error.message()));
  const fs::path folder = fs::weakly_canonical(fs::absolute(data_folder), error);
  if (error) return absl::FailedPreconditionError(absl::StrCat("data folder ", data_folder, ": ", error.message()));
  return LocalFleet(folder.string(), self.parent_path().string());
}

LocalFleet::LocalFleet(std::string data_folder, std::string program_folder)
    : data_folder_(std::move(data_folder)), program_folder_(std::move(program_folder)) {}

Daemon LocalFleet::server() const { return Daemon("server", program_folder_ + "/chainfleet-server", run_folder()); }

Daemon LocalFleet::worker(int index) const {
  return Daemon(absl::StrCat("worker-", index), program_folder_ + "/chainfleet-worker", run_folder());
}

std::vector<Daemon> LocalFleet::KnownWorkers() const {
  std::set<int> indices;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_folder(), error)) {
    const fs::path path = entry.path();
    const std::string stem = path.stem().string();
    int index = 0;
    if (path.extension() == ".pid" && absl::SimpleAtoi(absl::StripPrefix(stem, "worker-"), &index))
      indices.insert(index);
  }
  std::vector<Daemon> workers;
  for (const int index : indices) workers.push_back(worker(index));
  return workers;
}

absl::StatusOr<int> LocalFleet::Port(const std::string& protocol) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string text, RealFileSystem()->Read(ports_path()));
  try {
    const YAML::Node port = YAML::Load(text)[protocol];
    if (!port) return absl::NotFoundError(absl::StrCat(ports_path(), " has no port for ", protocol));
    return port.as<int>();
  } catch (const YAML::Exception& e) {
    return absl::DataLossError(absl::StrCat(ports_path(), " is not what the server writes: ", e.what()));
  }
}

}  // namespace chainfleet

// A server and some workers on this machine, with embedded stores in one data folder. `up` starts and `down` stops
// them.
#pragma once

#include <string>
#include <vector>

#include "client/cli/daemon.h"
#include "core/base/environment.h"
#include "core/base/status.h"

namespace chainfleet {

class LocalFleet {
 public:
  // `data_folder` may not exist yet.
  static absl::StatusOr<LocalFleet> In(const std::string& data_folder);

  const std::string& data_folder() const { return data_folder_; }
  std::string run_folder() const { return data_folder_ + "/run"; }
  std::string ports_path() const { return run_folder() + "/ports.json"; }
  std::string listen_path() const { return run_folder() + "/listen"; }               // the address of `up --listen`
  std::string arguments_path() const { return run_folder() + "/server-arguments"; }  // its options, one a line

  Daemon server() const;
  Daemon worker(int index) const;
  // Workers that have a pid file, running or not, by index.
  std::vector<Daemon> KnownWorkers() const;

  // The port of the running server for "grpc" or "http", from ports.json. NOT_FOUND until the server has written it.
  absl::StatusOr<int> Port(const std::string& protocol) const;

 private:
  LocalFleet(std::string data_folder, std::string program_folder);
  std::string data_folder_, program_folder_;
};

}  // namespace chainfleet

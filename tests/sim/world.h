// The fleet of one simulated run: coordinators, workers, and the supervisor that restarts them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/server_node.h"
#include "tests/sim/site.h"
#include "tests/sim/worker_node.h"

namespace chainfleet {

// For one thread.
class World {
 public:
  // The site's dice decide size, devices and terms.
  explicit World(Site* site);
  ~World();

  Site& site() { return *site_; }

  // The process at each address, or null. With two addresses the newer process leads, and the other may still believe
  // that it leads.
  const std::vector<ServerNode*>& servers() const { return servers_; }
  // Returns running servers, including stopped ones.
  std::vector<ServerNode*> LiveServers() const;
  std::vector<WorkerNode*> LiveWorkers() const;
  // Returns a random one of these; null if there is none.
  ServerNode* AnyServer() const;
  WorkerNode* AnyWorker() const;
  int num_addresses() const { return static_cast<int>(servers_.size()); }

  // Replaces the process at the address.
  void StartServer(int address);
  // Kills all processes on the coordinators' host, and its disk loses unsynced data.
  void LosePower();
  void SetFaults(const PortFaults& faults);

  // Restarts dead processes at once, resumes stopped ones, repairs all lines, and gives the stores room.
  void Heal();

 private:
  class Line;  // connection of one machine to the coordinators

  struct Machine {
    std::string name;
    SimulatedDevice device;
    std::unique_ptr<Line> line;
    WorkerNode* worker = nullptr;
    int processes = 0;
    bool starting = false;
  };

  void StartWorker(Machine* machine);
  void Supervise();
  absl::Duration RestartDelay();

  Site* const site_;
  PortFaults faults_;
  bool calm_ = false;
  std::vector<ServerNode*> servers_;
  bool server_starting_ = false;
  std::vector<Machine> machines_;
  int servers_started_ = 0;
  std::vector<std::unique_ptr<ServerNode>> all_servers_;
  std::vector<std::unique_ptr<WorkerNode>> all_workers_;
};

}  // namespace chainfleet

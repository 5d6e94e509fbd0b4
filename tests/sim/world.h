// The fleet of one simulated run: coordinators and workers, and whoever starts them again when they died.
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
  // Size, devices and terms are drawn from the site's dice.
  explicit World(Site* site);
  ~World();

  Site& site() { return *site_; }

  // The process at each address, or none; with two addresses the newer process leads, the other may believe that it
  // does.
  const std::vector<ServerNode*>& servers() const { return servers_; }
  // Running ones, stopped ones too.
  std::vector<ServerNode*> LiveServers() const;
  std::vector<WorkerNode*> LiveWorkers() const;
  // One of these, drawn; null if there is none.
  ServerNode* AnyServer() const;
  WorkerNode* AnyWorker() const;
  int num_addresses() const { return static_cast<int>(servers_.size()); }

  // In the place of whatever is there.
  void StartServer(int address);
  // All that runs on the coordinators' host dies, and its disk forgets.
  void LosePower();
  void SetFaults(const PortFaults& faults);

  // Restarts dead processes at once, resumes stopped ones, repairs all lines, and gives the stores room.
  void Heal();

 private:
  class Line;  // of one machine to the coordinators

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

#include "core/base/host_memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace chainfleet {
namespace {

constexpr int64_t kMiB = 1 << 20;

// A tree of /proc and /sys; its limits are far below any machine's memory.
class HostMemoryTest : public ::testing::Test {
 protected:
  HostMemoryTest() { EXPECT_NE(mkdtemp(root_.data()), nullptr); }
  ~HostMemoryTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  static std::string MiB(int64_t count) { return std::to_string(count * kMiB); }

  std::string root_ = ::testing::TempDir() + "host_memory_XXXXXX";
  const int64_t physical_ = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
};

TEST_F(HostMemoryTest, IsTheMachinesWithoutALimit) {
  EXPECT_EQ(HostMemoryBytes(root_), physical_) << "no control groups at all";
  Write("/proc/self/cgroup", "0::/user.slice");
  Write("/sys/fs/cgroup/user.slice/memory.max", "max");
  EXPECT_EQ(HostMemoryBytes(root_), physical_);
}

TEST_F(HostMemoryTest, IsAtMostTheGroupsOwnLimit) {
  Write("/proc/self/cgroup", "0::/system.slice/chainfleet-worker@cpu.service");
  Write("/sys/fs/cgroup/system.slice/chainfleet-worker@cpu.service/memory.max", MiB(64));
  EXPECT_EQ(HostMemoryBytes(root_), 64 * kMiB);
}

TEST_F(HostMemoryTest, IsAtMostTheLimitOfAGroupAbove) {
  Write("/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0");
  Write("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.max", MiB(32));
  Write("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/memory.max", MiB(48));
  Write("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/user/task_0/memory.max", "max");
  EXPECT_EQ(HostMemoryBytes(root_), 32 * kMiB);
}

TEST_F(HostMemoryTest, IsAtMostTheLimitOfAContainerThatSeesItsGroupAsTheRoot) {
  Write("/proc/self/cgroup", "0::/");
  Write("/sys/fs/cgroup/memory.max", MiB(16));
  EXPECT_EQ(HostMemoryBytes(root_), 16 * kMiB);
}

TEST_F(HostMemoryTest, KnowsTheFirstVersionToo) {
  Write("/proc/self/cgroup", "9:cpu,cpuacct:/x\n4:hugetlb,memory:/slurm/uid_1/job_7\n0::/");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  Write("/sys/fs/cgroup/memory/slurm/uid_1/job_7/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(HostMemoryBytes(root_), physical_);
  Write("/sys/fs/cgroup/memory/slurm/uid_1/memory.limit_in_bytes", MiB(8));
  EXPECT_EQ(HostMemoryBytes(root_), 8 * kMiB);
}

TEST_F(HostMemoryTest, KnowsTheContainersOwnGroupWhereThePathIsTheHosts) {
  Write("/proc/self/cgroup", "4:memory:/kubepods/burstable/pod7/1f3c");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", MiB(8));
  EXPECT_EQ(HostMemoryBytes(root_), 8 * kMiB);
}

}  // namespace
}  // namespace chainfleet

// Replaces NVIDIA's management library: GPU 0 is busy, GPU 1 is idle and has no power sensor.
#include <cstdint>

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index > 1) return 2;
  *device = reinterpret_cast<void*>(static_cast<uintptr_t>(index + 1));
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) {
  rates[0] = device == reinterpret_cast<void*>(1) ? 87 : 0;
  rates[1] = 12;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  memory[0] = 80ull << 30;
  memory[2] = device == reinterpret_cast<void*>(1) ? 20ull << 30 : 1ull << 30;
  memory[1] = memory[0] - memory[2];
  return 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (device != reinterpret_cast<void*>(1)) return 3;  // not supported
  *milliwatts = 312500;
  return 0;
}

}  // extern "C"

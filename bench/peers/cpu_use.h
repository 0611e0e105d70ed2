// CPU utilization of the measured sections of a program: CPU time of all threads over wall time.
#pragma once

#include <chrono>
#include <ctime>

class CpuUse {
 public:
  /// Runs a section and returns its milliseconds.
  template <class Section>
  double timed(Section&& section) {
    const std::clock_t cpu = std::clock();
    const auto start = std::chrono::steady_clock::now();
    section();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    cpu_ += static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
    wall_ += seconds;
    return seconds * 1e3;
  }
  double cpus() const { return wall_ > 0 ? cpu_ / wall_ : 0; }

 private:
  double cpu_ = 0, wall_ = 0;
};

// F32 recurrences: gated cells (RNN, GRU, LSTM) and state-space scans.
//
// Each element of a state is one chain of sums over k, so its bits do not depend on the chunks or on the number of
// threads.
#pragma once

#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

enum class CellKind : std::uint8_t {
  Rnn,        // 1 gate
  Gru,        // 3 gates z, r, n; reset before the matmul
  GruLinear,  // reset after the matmul
  Lstm,       // 4 gates i, o, f, c
};
constexpr int cell_gates(CellKind kind) { return kind == CellKind::Rnn ? 1 : kind == CellKind::Lstm ? 4 : 3; }
enum class CellFn : std::uint8_t { Sigmoid, Tanh, Relu, HardSigmoid };
struct CellFnOf {
  CellFn fn = CellFn::Sigmoid;
  float alpha = 0, beta = 0;  // of HardSigmoid
};

/// A recurrence over `steps` steps of `batch` rows in `directions` directions.
struct RecurrentF32 {
  CellKind kind = CellKind::Lstm;
  std::int64_t steps = 0, batch = 0, hidden = 0, directions = 1;
  bool reversed[2] = {false, true};
  bool couples = false;  // Lstm: f = 1 - i
  float clip = 0;        // 0: none
  CellFnOf fn[2][3];
  const float* gates = nullptr;  // of step t, row b: + t * gate_step + b * gate_row + d * G H
  std::int64_t gate_step = 0, gate_row = 0;
  const float* r = nullptr;                  // [D, G H, H]
  const float* bias = nullptr;               // GruLinear: [D, H]
  const float* peepholes = nullptr;          // Lstm: [D, 3 H], or null
  const void* lengths = nullptr;             // [B], or null
  bool wide_lengths = false;                 // I64, else I32
  const float *h0 = nullptr, *c0 = nullptr;  // [D, B, H], or null: zeros
  float* y = nullptr;  // of step t, row b: + t * y_step + b * y_row + d * y_direction; may be null
  std::int64_t y_step = 0, y_row = 0, y_direction = 0;
  float *h = nullptr, *c = nullptr;  // the last states [D, B, H]; may be null
  // Memory shared by all chunks.
  float* packed = nullptr;  // r in blocks of lanes: [D][block][k][G][lanes]
  float* states = nullptr;  // double-buffered h, then c, and for Gru r h and z: [5][D, B, H]
};

/// A range of rows and hidden units, for one step or for all.
struct RecurrentPart {
  std::int64_t direction = 0, first_row = 0, last_row = 0, first_block = 0, last_block = 0;
};

/// Scans. A chunk is a sequence (and head) and some lanes of its width.
struct SelectiveScanF32 {
  std::int64_t batch = 0, steps = 0, width = 0, n = 0;
  bool softplus = false;
  const float *x = nullptr, *delta = nullptr, *a = nullptr, *b = nullptr, *c = nullptr;
  const float *d = nullptr, *z = nullptr, *bias = nullptr, *start = nullptr;  // may be null
  float *y = nullptr, *last = nullptr;                                        // last may be null
};
struct Mamba2F32 {
  std::int64_t batch = 0, steps = 0, heads = 0, groups = 1, width = 0, n = 0;
  bool softplus = false, matrix_d = false;
  const float *x = nullptr, *dt = nullptr, *a = nullptr, *b = nullptr, *c = nullptr;
  const float *d = nullptr, *z = nullptr, *bias = nullptr, *start = nullptr;
  float *y = nullptr, *last = nullptr;
};
struct GatedDeltaF32 {
  std::int64_t batch = 0, steps = 0, heads = 0, groups = 1, width = 0, n = 0;
  float scale = 1;
  const float *q = nullptr, *k = nullptr, *v = nullptr, *g = nullptr, *beta = nullptr, *start = nullptr;
  float *y = nullptr, *last = nullptr;
};

struct RecurrentKernels {
  std::int64_t lanes;
  std::int64_t rows;  // of a tile
  /// Packs block `block` of direction `d`.
  void (*pack)(const RecurrentF32& r, std::int64_t d, std::int64_t block);
  /// `begin` writes the start states of some rows of a direction; `end` writes the results.
  void (*begin)(const RecurrentF32& r, std::int64_t d, std::int64_t first_row, std::int64_t last_row);
  void (*end)(const RecurrentF32& r, std::int64_t d, std::int64_t first_row, std::int64_t last_row);
  /// Phase `phase` (Gru has two) of the `n`-th step.
  void (*step)(const RecurrentF32& r, const RecurrentPart& part, std::int64_t n, int phase);
  /// Lanes [first, first + count) of a sequence. `scratch` has `scan_scratch(n)` floats.
  void (*selective_scan)(const SelectiveScanF32& s, std::int64_t sequence, std::int64_t first, float* scratch);
  void (*mamba2)(const Mamba2F32& s, std::int64_t sequence, std::int64_t head, std::int64_t first, float* scratch);
  void (*gated_delta)(const GatedDeltaF32& s, std::int64_t sequence, std::int64_t head, std::int64_t first,
                      float* scratch);
  std::int64_t selective_lanes, matrix_lanes;  // of a chunk
};
/// Floats of scratch of a scan with `n` state elements per lane.
constexpr std::int64_t scan_scratch(std::int64_t n) { return 2 * (n + 1) * 64; }

const RecurrentKernels& recurrent_kernels(Isa isa);

}  // namespace rlx::cpu

// Recurrent layers with PyTorch's weights and results, scans of state spaces with operands by name, causal convolution.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::nn {

/// Weights of one layer and direction as PyTorch keeps them: w_ih [G H, I], w_hh [G H, H], biases [G H]; gates of lstm
/// in the order i, f, g, o, of gru r, z, n.
struct RecurrentWeights {
  Expr w_ih, w_hh;
  std::optional<Expr> b_ih{}, b_hh{};
};
struct RecurrentOptions {
  bool bidirectional = false, batch_first = false;
  std::optional<Expr> lengths{};   // I32 or I64 [B]: steps of each sequence; y is 0 behind them
  std::optional<Expr> h0{}, c0{};  // [layers D, B, H]; zeros without
};
struct RecurrentResult {
  Expr y;  // [S, B, D H], with batch_first [B, S, D H]
  Expr h;  // [layers D, B, H]
  Expr c;  // the same, of lstm alone
};
/// torch.nn.LSTM: x [S, B, I] through layers, `layers` in the order layer 0 forward, layer 0 reverse, layer 1 ..
/// InvalidArgument for an odd number of them with both directions, or for none.
RecurrentResult lstm(Operand x, const std::vector<RecurrentWeights>& layers, const RecurrentOptions& options = {});
/// torch.nn.GRU, whose reset gate stands behind the product (ops::Gru::linear_before_reset).
RecurrentResult gru(Operand x, const std::vector<RecurrentWeights>& layers, const RecurrentOptions& options = {});
/// torch.nn.RNN with `fn`.
RecurrentResult rnn(Operand x, const std::vector<RecurrentWeights>& layers, const RecurrentOptions& options = {},
                    ActivationKind fn = ActivationKind::Tanh);

/// One step of lstm: x [B, I], h and c [B, H] -> {h, c}.
std::pair<Expr, Expr> lstm_cell(Operand x, Operand h, Operand c, const RecurrentWeights& weights);
/// One step of gru: x [B, I], h [B, H] -> h.
Expr gru_cell(Operand x, Operand h, const RecurrentWeights& weights);
/// One step of rnn.
Expr rnn_cell(Operand x, Operand h, const RecurrentWeights& weights, ActivationKind fn = ActivationKind::Tanh);

/// What a scan gives: y, and the state behind the last step.
struct ScanResult {
  Expr y, state;
};
struct SelectiveScanOptions {
  std::optional<Expr> d{}, z{}, delta_bias{}, state{};
  bool delta_softplus = false;
};
/// See ops::SelectiveScan.
ScanResult selective_scan(Operand x, Operand delta, Operand a, Operand b, Operand c,
                          const SelectiveScanOptions& options = {});
struct Mamba2Options {
  std::optional<Expr> d{}, z{}, dt_bias{}, state{};
  bool dt_softplus = false;
  std::int64_t chunk = 64;
};
/// See ops::Mamba2.
ScanResult mamba2(Operand x, Operand dt, Operand a, Operand b, Operand c, const Mamba2Options& options = {});
struct GatedDeltaOptions {
  std::optional<Expr> state{};
  std::optional<double> scale{};
  std::int64_t chunk = 32;
};
/// See ops::GatedDeltaNet.
ScanResult gated_delta_net(Operand q, Operand k, Operand v, Operand g, Operand beta,
                           const GatedDeltaOptions& options = {});

struct CausalConvOptions {
  std::optional<Expr> context{}, bias{};       // [B, K - 1, C], zeros without; [C]
  std::optional<ActivationKind> activation{};  // of the sum
};
struct CausalConvResult {
  Expr y;        // [B, S, C]
  Expr context;  // the last K - 1 rows of context and x: what the next call takes
};
/// Each channel of x [B, S, C] convolved with its own filter, reaching back alone: y_t = sum over j of w_j x_(t - K + 1
/// + j). w [C, K] or [C, 1, 1, K], K known and above 0.
CausalConvResult causal_conv1d(Operand x, Operand w, const CausalConvOptions& options = {});

}  // namespace rlx::nn

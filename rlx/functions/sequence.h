// Recurrent layers, state-space scans and causal convolution. Recurrent layers have PyTorch's weights and results.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::nn {

/// The weights of one layer and direction in PyTorch's layout: w_ih [G H, I], w_hh [G H, H], biases [G H]. The gates of
/// lstm are in the order i, f, g, o, those of gru r, z, n.
struct RecurrentWeights {
  Expr w_ih, w_hh;
  std::optional<Expr> b_ih{}, b_hh{};
};
/// Options of recurrent layers.
struct RecurrentOptions {
  bool bidirectional = false, batch_first = false;
  std::optional<Expr> lengths{};   // I32 or I64 [B]: the steps of each sequence; y is 0 after them
  std::optional<Expr> h0{}, c0{};  // [layers D, B, H]; zeros by default
};
/// Results of recurrent layers; D is the number of directions.
struct RecurrentResult {
  Expr y;  // [S, B, D H], with batch_first [B, S, D H]
  Expr h;  // [layers D, B, H]
  Expr c;  // lstm only: [layers D, B, H]
};
/// torch.nn.LSTM for x [S, B, I]. `layers` are in the order layer 0 forward, layer 0 reverse, layer 1 forward, ..
/// InvalidArgument if `layers` is empty, or is odd in number with both directions.
RecurrentResult lstm(Operand x, const std::vector<RecurrentWeights>& layers, const RecurrentOptions& options = {});
/// torch.nn.GRU, which applies the reset gate after the matmul (ops::Gru::linear_before_reset). Operands are those of
/// lstm.
RecurrentResult gru(Operand x, const std::vector<RecurrentWeights>& layers, const RecurrentOptions& options = {});
/// torch.nn.RNN with the activation `fn`. Operands are those of lstm.
RecurrentResult rnn(Operand x, const std::vector<RecurrentWeights>& layers, const RecurrentOptions& options = {},
                    ActivationKind fn = ActivationKind::Tanh);

/// One step of lstm: x [B, I], h and c [B, H] -> {h, c}.
std::pair<Expr, Expr> lstm_cell(Operand x, Operand h, Operand c, const RecurrentWeights& weights);
/// One step of gru: x [B, I], h [B, H] -> h.
Expr gru_cell(Operand x, Operand h, const RecurrentWeights& weights);
/// One step of rnn: x [B, I], h [B, H] -> h.
Expr rnn_cell(Operand x, Operand h, const RecurrentWeights& weights, ActivationKind fn = ActivationKind::Tanh);

/// Results of a scan: y, and the state after the last step.
struct ScanResult {
  Expr y, state;
};
/// Optional operands and attributes of selective_scan.
struct SelectiveScanOptions {
  std::optional<Expr> d{}, z{}, delta_bias{}, state{};
  bool delta_softplus = false;
};
/// The selective scan of Mamba. Operands are cast to the dtypes of ops::SelectiveScan.
ScanResult selective_scan(Operand x, Operand delta, Operand a, Operand b, Operand c,
                          const SelectiveScanOptions& options = {});
/// Optional operands and attributes of mamba2.
struct Mamba2Options {
  std::optional<Expr> d{}, z{}, dt_bias{}, state{};
  bool dt_softplus = false;
  std::int64_t chunk = 64;
};
/// The scan of Mamba-2. Operands are cast to the dtypes of ops::Mamba2.
ScanResult mamba2(Operand x, Operand dt, Operand a, Operand b, Operand c, const Mamba2Options& options = {});
/// Optional operands and attributes of gated_delta_net.
struct GatedDeltaOptions {
  std::optional<Expr> state{};
  std::optional<double> scale{};
  std::int64_t chunk = 32;
};
/// The gated delta rule. Operands are cast to the dtypes of ops::GatedDeltaNet.
ScanResult gated_delta_net(Operand q, Operand k, Operand v, Operand g, Operand beta,
                           const GatedDeltaOptions& options = {});

/// Options of causal_conv1d.
struct CausalConvOptions {
  std::optional<Expr> context{}, bias{};       // [B, K - 1, C], zeros by default; [C]
  std::optional<ActivationKind> activation{};  // applied to the sum
};
/// Results of causal_conv1d.
struct CausalConvResult {
  Expr y;        // [B, S, C]
  Expr context;  // [B, K - 1, C]: the last rows of context and x, for the next call
};
/// A causal depthwise convolution of x [B, S, C]: y_t = sum over j of w_j x_(t - K + 1 + j) per channel, plus bias,
/// where rows before x come from context. w is [C, K] or [C, 1, 1, K] with a static K > 0. ShapeMismatch for other
/// shapes.
CausalConvResult causal_conv1d(Operand x, Operand w, const CausalConvOptions& options = {});

}  // namespace rlx::nn

// Op structs of recurrences.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"

// clang-format off
namespace rlx {

/// The order in which a recurrence takes its steps; both gives two of them, whose results lie side by side.
enum class RecurrentDirection : std::uint8_t { Forward, Reverse, Bidirectional };
template <> struct EnumNames<RecurrentDirection> {
  static constexpr std::string_view values[] = {"forward", "reverse", "bidirectional"};
};

namespace ops {

/// h = f(x w^T + h r^T + b_w + b_r), step by step: ONNX RNN, torch.nn.RNN. Inputs: x [S, B, I] (batch_first: [B, S,
/// I]), [w [D, G H, I]], r [D, G H, H], [bias [D, 2 G H]: b_w, then b_r], [lengths I32 or I64 [B]], [h0 [D, B, H]],
/// with G = 1 gate and D = 2 for both directions, else 1. Results: y [S, D, B, H] (batch_first: [B, S, D, H]), h [D, B,
/// H] behind the last step. Without w, x is the projection itself: x w^T and the biases, [S, B, D G H]. A sequence has
/// lengths[b] steps, clamped to 0 and S: the steps behind them leave h as it is and give rows of zeros, and the reverse
/// direction begins at the last of them. `activations`: f of each direction, or one for both; tanh unless said.
/// `alpha`, `beta`: their parameters, one for each or none. `clip` bounds what goes into the gates to [-clip, clip].
/// F16 and BF16 are computed in F32.
struct Rnn {
  RLX_OP(Rnn);
  RecurrentDirection direction = RecurrentDirection::Forward;
  bool batch_first = false;
  std::vector<ActivationKind> activations{};
  std::vector<double> alpha{}, beta{};
  std::optional<double> clip{};
  OperandMask present{};
};
/// ONNX GRU, torch.nn.GRU: as Rnn with G = 3 gates in the order z, r, n (PyTorch's is r, z, n:
/// rlx/functions/sequence.h). z = f(x w_z + h r_z + b), r = f(x w_r + h r_r + b), n = g(x w_n + (r h) r_n + b), h' = z
/// h + (1 - z) n. With `linear_before_reset`, PyTorch's form, n = g(x w_n + b_wn + r (h r_n + b_rn)). `activations`: f,
/// g; sigmoid and tanh unless said. Without w, bias is b_rn [D, H] where linear_before_reset asks for it, else absent.
struct Gru {
  RLX_OP(Gru);
  RecurrentDirection direction = RecurrentDirection::Forward;
  bool batch_first = false, linear_before_reset = false;
  std::vector<ActivationKind> activations{};
  std::vector<double> alpha{}, beta{};
  std::optional<double> clip{};
  OperandMask present{};
};
/// ONNX LSTM, torch.nn.LSTM: as Rnn with G = 4 gates in the order i, o, f, c (PyTorch's is i, f, c, o), and c0 [D, B,
/// H] and peepholes p [D, 3 H] (of i, o, f) behind h0. i = f(x w_i + h r_i + p_i c + b), f likewise, or 1 - i with
/// `input_forget`; c' = f c + i g(x w_c + h r_c + b); o = f(x w_o + h r_o + p_o c' + b); h' = o h(c'). `activations`:
/// f, g, h; sigmoid, tanh and tanh unless said. Results: y, h, c. Without w there is no bias.
struct Lstm {
  RLX_OP(Lstm);
  RecurrentDirection direction = RecurrentDirection::Forward;
  bool batch_first = false, input_forget = false;
  std::vector<ActivationKind> activations{};
  std::vector<double> alpha{}, beta{};
  std::optional<double> clip{};
  OperandMask present{};
};
/// The scan of Mamba: h_t = exp(delta_t a) h_{t-1} + delta_t b_t x_t, y_t = sum over n of c_t h_t (+ d x_t), for each
/// channel. Inputs: x, delta [B, S, H], a [H, N], b, c [B, S, N], [d [H]], [z [B, S, H]], [delta_bias [H]], [state [B,
/// H, N]]. delta is delta + delta_bias, and softplus of that with `delta_softplus`; with z y is times silu(z). Results:
/// y [B, S, H] and the last state [B, H, N]. The state has the dtype that x accumulates in, F32 for F16 and BF16; a, d
/// and delta_bias have that or x's. A start state of zeros where there is none.
struct SelectiveScan { RLX_OP(SelectiveScan); bool delta_softplus = false; OperandMask present{}; };
/// The scan of Mamba-2 (SSD): a matrix h [P, N] for each head, h_t = exp(dt_t a) h_{t-1} + dt_t x_t b_t^T, y_t = h_t
/// c_t (+ d x_t). Inputs: x [B, S, H, P], dt [B, S, H], a [H], b, c [B, S, G, N] with H a multiple of G, [d [H] or [H,
/// P]], [z [B, S, H, P]], [dt_bias [H]], [state [B, H, P, N]]. dt is dt + dt_bias, and softplus of that with
/// `dt_softplus`; with z y is times silu(z). Results: y [B, S, H, P], the last state. It is written out in pieces of
/// `chunk` steps, as products of matrices; 1 writes it out step by step. Dtypes as in SelectiveScan.
struct Mamba2 {
  RLX_OP(Mamba2);
  bool dt_softplus = false;
  std::int64_t chunk = 64;
  OperandMask present{};
};
/// The gated delta rule: a matrix S [K, V] for each head. Each step S = exp(g) S, u = (v - k^T S) beta, S = S + k u^T,
/// y = scale q^T S, with scale K^-1/2 unless said. Inputs: q, k [B, S, G, K], v [B, S, H, V] with H a multiple of G, g,
/// beta [B, S, H], [state [B, H, K, V]]. Results: y [B, S, H, V], the last state. q and k are normalised by the caller.
/// It is written out in pieces of `chunk` steps, a power of two, as products of matrices; 1 writes it out step by step.
/// Dtypes as in SelectiveScan; g and beta have x's or the state's.
struct GatedDeltaNet {
  RLX_OP(GatedDeltaNet);
  std::optional<double> scale{};
  std::int64_t chunk = 32;
  OperandMask present{};
};

}  // namespace ops
}  // namespace rlx
// clang-format on

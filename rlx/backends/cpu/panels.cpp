// Making panels of matrices, and matrices of panels.
#include "rlx/backends/cpu/panels.h"

#include <algorithm>
#include <type_traits>

#include "rlx/tensor/half.h"
#include "rlx/tensor/visit.h"

namespace rlx::cpu {
namespace {

constexpr const char* kId = "panels";
// Counted up when the same parameters begin to mean other bytes: forms that were saved are then made again.
constexpr std::int64_t kVersion = 1;

DType panel_dtype(PanelType t) {
  return t == PanelType::F32 ? DType::F32 : t == PanelType::BF16 ? DType::BF16 : DType::F16;
}

/// Where column `j` of a matrix with `k` rows and `n` columns lies: element `at` and then one every `step`.
struct PanelColumn {
  std::int64_t at = 0, step = 0;
};
PanelColumn column_of(const Panels& p, std::int64_t k, std::int64_t n, std::int64_t j) {
  const std::int64_t first = j / p.width * p.width;
  const std::int64_t step = std::min(p.width, (n - first + p.lanes - 1) / p.lanes * p.lanes);
  return {first * k + (j - first), step};
}

/// Calls f(T{}) with the C++ type of the elements.
template <class F>
void visit_panels(PanelType t, F&& f) {
  if (t == PanelType::F32)
    f(float{});
  else if (t == PanelType::BF16)
    f(BF16{});
  else
    f(F16{});
}

/// Elements along k in runs, so that lines of both sides are used up while they are near.
constexpr std::int64_t kRun = 32;

// Columns whose elements change their type.
template <class From, class To>
void convert_columns(const Panels& p, const PanelSource& s, const From* values, To* panels) {
  const std::int64_t k = s.op.k;
  for (std::int64_t j = s.begin; j < s.end;) {
    const std::int64_t stop = std::min(s.end, (s.first + j) / p.width * p.width + p.width - s.first);
    for (std::int64_t k0 = 0; k0 < k; k0 += kRun)
      for (std::int64_t c = j; c < stop; ++c) {
        const PanelColumn column = column_of(p, k, s.op.n, s.first + c);
        const From* from = values + s.source.offset + c * s.source.n_stride;
        for (std::int64_t kk = k0; kk < std::min(k, k0 + kRun); ++kk)
          panels[column.at + kk * column.step] = To(static_cast<float>(from[kk * s.source.k_stride]));
      }
    j = stop;
  }
  if (const std::int64_t last = s.first + s.end; last == s.op.n)  // zeros behind the last column
    for (std::int64_t j = last; j % p.lanes != 0; ++j) {
      const PanelColumn column = column_of(p, k, s.op.n, j);
      for (std::int64_t kk = 0; kk < k; ++kk) panels[column.at + kk * column.step] = To(0.0F);
    }
}

}  // namespace

Form panel_form(const KernelTable& kernels, const ConstantMatrix& m) {
  const PanelType type = m.stored == DType::BF16  ? PanelType::BF16
                         : m.stored == DType::F16 ? PanelType::F16
                                                  : PanelType::F32;
  return {kId,
          {kernels.packed_nr_f32(m.n), kernels.lanes_f32, static_cast<std::int64_t>(type), kVersion},
          kernels.packed_size_f32(m.k, m.n) * panel_element_bytes(type)};
}

std::optional<Panels> panels_of(const Form& form) {
  if (form.id != kId || form.params.size() != 4 || form.params[3] != kVersion) return std::nullopt;
  const Panels p{form.params[0], form.params[1], static_cast<PanelType>(form.params[2])};
  if (p.width < 1 || p.lanes < 1 || form.params[2] < 0 || form.params[2] > 2) return std::nullopt;
  return p;
}

bool reads_panels(const KernelTable& kernels, const Form& form, std::int64_t k, std::int64_t n) {
  const std::optional<Panels> p = panels_of(form);
  return p && matrix_form(form) == panel_form(kernels, {k, n, DType::F32, panel_dtype(p->type)});
}

void encode_panels(const KernelTable& kernels, const PanelSource& s, DType from, const std::byte* values,
                   std::byte* to) {
  const Panels p = *panels_of(s.op.form);
  const std::int64_t at = s.source.offset + s.begin * s.source.n_stride;
  if (from == panel_dtype(p.type)) {
    if (p.type == PanelType::F32)
      kernels.pack_b_f32(reinterpret_cast<const float*>(values) + at, s.source.k_stride, s.source.n_stride, s.op.k,
                         s.op.n, s.first + s.begin, s.first + s.end, reinterpret_cast<float*>(to));
    else
      kernels.pack_b_16(reinterpret_cast<const std::uint16_t*>(values) + at, s.source.k_stride, s.source.n_stride,
                        s.op.k, s.op.n, s.first + s.begin, s.first + s.end, reinterpret_cast<std::uint16_t*>(to));
    return;
  }
  visit_dtype(from, [&]<class From>(From) {
    if constexpr (std::is_convertible_v<From, float>)
      visit_panels(p.type, [&]<class To>(To) {
        convert_columns(p, s, reinterpret_cast<const From*>(values), reinterpret_cast<To*>(to));
      });
    else
      throw Error(ErrorCode::Internal, concat_text("a weight of ", dtype_name(from), " reached panels; please report"));
  });
}

void decode_panels(const PanelSource& s, const std::byte* panels, DType to, std::byte* values) {
  const Panels p = *panels_of(s.op.form);
  for (std::int64_t j = s.begin; j < s.end; ++j) {
    const PanelColumn column = column_of(p, s.op.k, s.op.n, s.first + j);
    const std::int64_t at = s.source.offset + j * s.source.n_stride;
    for (std::int64_t k = 0; k < s.op.k; ++k)
      store_element(values, to, at + k * s.source.k_stride,
                    load_element<double>(panels, panel_dtype(p.type), column.at + k * column.step));
  }
}

void read_panel_column(const Panels& p, std::int64_t k, std::int64_t n, std::int64_t j, const std::byte* panels,
                       float* to) {
  const PanelColumn column = column_of(p, k, n, j);
  visit_panels(p.type, [&]<class T>(T) {
    const T* from = reinterpret_cast<const T*>(panels) + column.at;
    for (std::int64_t i = 0; i < k; ++i) to[i] = static_cast<float>(from[i * column.step]);
  });
}

}  // namespace rlx::cpu

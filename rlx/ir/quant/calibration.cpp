// Calibration records: valid entries, the values of their paths, and their text.
#include "rlx/ir/quant/calibration.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/quant/quant_map.h"

namespace rlx {
namespace {

constexpr std::string_view kVersion = "calibration 1";

[[noreturn]] void refuse(std::string_view path, const std::string& what, const char* hint = "") {
  throw Error(ErrorCode::InvalidArgument, concat_text("calibration of '", path, "': ", what), hint);
}

void check_entry(std::string_view path, const CalibrationEntry& e) {
  if (path.empty() || std::any_of(path.begin(), path.end(), [](unsigned char c) { return c < 0x20; }))
    refuse(path, "a path must be one line of text");
  if (e.scales.empty()) refuse(path, "the entry has no scale");
  if (!e.axis && e.scales.size() > 1)
    refuse(path, concat_text(e.scales.size(), " scales, but no axis"), "give the axis, or a single scale");
  if (e.axis && *e.axis < 0)
    refuse(path, concat_text("axis ", *e.axis, " is negative"),
           "count from the first axis: the rank is not known here");
  for (double s : e.scales)
    if (!(s > 0) || !std::isfinite(s)) refuse(path, concat_text("a scale is ", s), "scales must be finite and above 0");
  if (!e.zero_points.empty() && e.zero_points.size() != e.scales.size())
    refuse(path, concat_text(e.zero_points.size(), " zero points for ", e.scales.size(), " scales"));
}

void check_fits(std::string_view path, const CalibrationEntry& e, const Shape& s) {
  if (!is_float(s.dtype())) refuse(path, concat_text("the value must be float, got ", s));
  if (!e.axis) return;
  if (*e.axis >= s.rank()) refuse(path, concat_text("the value ", s, " has no axis ", *e.axis));
  const Dim& extent = s.dim(static_cast<int>(*e.axis));
  if (extent.is_static() && extent.value() != static_cast<std::int64_t>(e.scales.size()))
    refuse(path, concat_text(e.scales.size(), " scales along axis ", *e.axis, " of ", s));
}

const Tensor* constant_of(const Graph& g, Value v) {
  const auto* c = g.node(v.node).op.get_if<ops::Constant>();
  return c ? &c->value : nullptr;
}

// Every path of a graph with its values. A quantized value has the path of its QuantMap entry.
std::multimap<std::string, Value, std::less<>> paths_of(const Graph& g) {
  std::multimap<std::string, Value, std::less<>> out;
  const QuantMap map(g);
  std::vector<bool> known(g.num_nodes(), false);
  std::set<std::string_view> quantised;
  for (const QuantEntry& e : map.entries()) {
    out.emplace(e.path, e.value);
    quantised.insert(e.path);
    known[e.value.node.index] = true;
    if (e.codes) known[e.codes->node.index] = true;  // quantized values are not calibrated
  }
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    if (known[i]) continue;
    const std::string label = node_label(g, NodeId{i});
    if (quantised.contains(label)) continue;  // for example its scale may have the label of the same scope
    for (std::uint32_t r = 0; r < g.node(NodeId{i}).num_results(); ++r)
      out.emplace(r == 0 ? label : concat_text(label, "#", r), Value(NodeId{i}, r));
  }
  return out;
}

// -- text --

template <class T>
void append_numbers(std::string& out, const std::vector<T>& numbers) {
  for (const T& n : numbers) {
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, n);
    out += ' ';
    out.append(buffer, end.ptr);
  }
}

/// One line of a record.
class Line {
 public:
  Line(std::string_view text, std::size_t number) : rest_(text), number_(number) {}
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Diagnostic{ErrorCode::BadFile, what, concat_text("line ", number_, " of a calibration record"),
                           "a line must be '[axis N, ]scales S ..[, zero_points Z ..]: path'"});
  }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  template <class T>
  T number() {
    T v{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), v);
    if (error != std::errc()) fail(concat_text("expected a number before '", short_name(rest_), "'"));
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return v;
  }
  template <class T>
  std::vector<T> numbers() {
    std::vector<T> out;
    while (take(" ")) out.push_back(number<T>());
    return out;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  std::size_t number_;
};

}  // namespace

CalibrationRecord CalibrationRecord::of(const Graph& g) {
  CalibrationRecord out;
  const QuantMap map(g);
  for (const QuantEntry& e : map.entries()) {
    if (is_block_scheme(e.scheme) || e.block > 0 || e.global_scale) continue;
    const Node& n = g.node(e.value.node);
    const Tensor* scale = nullptr;
    if (e.fake) {
      if (n.op.as<ops::FakeQuantize>().mode == ScaleMode::Fixed) scale = constant_of(g, n.inputs[1]);
    } else if (e.scale) {
      scale = constant_of(g, *e.scale);
    }
    const Tensor* zero = e.zero_point ? constant_of(g, *e.zero_point) : nullptr;
    if (!scale || (e.zero_point && !zero)) continue;
    CalibrationEntry entry{e.axis, scale->to_f64(), {}};
    if (zero)
      for (std::int64_t i = 0; i < zero->num_elements(); ++i) entry.zero_points.push_back(zero->at_i64(i));
    out.set(e.path, std::move(entry));
  }
  return out;
}

void CalibrationRecord::set(std::string path, CalibrationEntry entry) {
  check_entry(path, entry);
  entries_.insert_or_assign(std::move(path), std::move(entry));
}

const CalibrationEntry* CalibrationRecord::find(std::string_view path) const {
  const auto at = entries_.find(path);
  return at == entries_.end() ? nullptr : &at->second;
}

std::vector<std::pair<Value, CalibrationEntry>> CalibrationRecord::values_in(const Graph& g) const {
  const auto paths = paths_of(g);
  std::vector<std::pair<Value, CalibrationEntry>> out;
  for (const auto& [path, entry] : entries_) {
    const auto at = paths.find(path);
    if (at == paths.end()) {
      std::vector<std::string> names;
      for (const auto& known : paths) names.push_back(known.first);
      throw Error(ErrorCode::NotFound, concat_text("the graph has no value with the path '", path, "'"),
                  did_you_mean(path, names, "label the node that computes it"));
    }
    if (paths.count(path) > 1)
      refuse(path, concat_text(paths.count(path), " values have this path"), "give them different labels");
    check_fits(path, entry, g.shape(at->second));
    out.emplace_back(at->second, entry);
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

std::string CalibrationRecord::text() const {
  std::string out = concat_text(kVersion, "\n");
  for (const auto& [path, e] : entries_) {
    if (e.axis) out += concat_text("axis ", *e.axis, ", ");
    out += "scales";
    append_numbers(out, e.scales);
    if (!e.zero_points.empty()) {
      out += ", zero_points";
      append_numbers(out, e.zero_points);
    }
    out += concat_text(": ", path) + "\n";
  }
  return out;
}

CalibrationRecord CalibrationRecord::parse(std::string_view text) {
  CalibrationRecord out;
  std::size_t number = 0;
  for (; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    Line line(text.substr(0, end), number + 1);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (number == 0) {
      if (!line.take(kVersion) || !line.rest().empty()) line.fail(concat_text("expected '", kVersion, "'"));
      continue;
    }
    CalibrationEntry e;
    if (line.take("axis ")) {
      e.axis = line.number<std::int64_t>();
      if (!line.take(", ")) line.fail("expected ', ' after the axis");
    }
    if (!line.take("scales")) line.fail("expected 'scales'");
    e.scales = line.numbers<double>();
    if (line.take(", zero_points")) e.zero_points = line.numbers<std::int64_t>();
    if (!line.take(": ")) line.fail("expected ': ' and a path");
    const std::string path(line.rest());
    if (out.find(path)) line.fail(concat_text("a second entry of '", path, "'"));
    const auto entered = attempt([&] {
      out.set(path, std::move(e));
      return true;
    });
    if (!entered) line.fail(entered.error().message);
  }
  if (number == 0) Line({}, 1).fail(concat_text("expected '", kVersion, "'"));
  return out;
}

}  // namespace rlx

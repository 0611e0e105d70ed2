// Custom ops: kernels registered by other projects, and the kernel entry that runs them.
#include "rlx/backends/cpu/custom_kernel.h"

#include <map>
#include <mutex>

#include "rlx/backends/cpu/entries.h"
#include "rlx/base/forks.h"
#include "rlx/ir/custom_op.h"
#include "rlx/ir/ops/custom.h"
#include "rlx/ir/rewrite/roots.h"

namespace rlx {
namespace {

struct Kernels {
  ProcessMutex mutex;
  std::map<std::string, CpuKernel, std::less<>> by_name;  // never erased: programs hold pointers to the values
};
Kernels& kernels() {
  static Kernels& k = *new Kernels;  // never destroyed: threads may outlive exit()
  return k;
}

const CpuKernel* find_kernel(std::string_view name) {
  Kernels& k = kernels();
  std::lock_guard lock(k.mutex);
  auto it = k.by_name.find(name);
  return it == k.by_name.end() ? nullptr : &it->second;
}

}  // namespace

void register_cpu_kernel(std::string_view name, const CpuKernel& kernel) {
  if (!kernel.run)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("register_cpu_kernel('", name, "'): the kernel has no run function"));
  if (!registered_op(name)) {
    if (find_op(name))
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("register_cpu_kernel('", name, "'): the op is built into rlx, and so are its kernels"),
                  "register an op under another name with register_op, and a kernel for it");
    std::vector<std::string> names;
    for (const OpDef* def : registered_ops()) names.emplace_back(def->name);
    throw Error(ErrorCode::NotFound, concat_text("register_cpu_kernel('", name, "'): no op of this name is registered"),
                did_you_mean(name, names, "call register_op with its record first"));
  }
  Kernels& k = kernels();
  std::lock_guard lock(k.mutex);
  if (!k.by_name.try_emplace(std::string(name), kernel).second)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("register_cpu_kernel('", name, "'): the op has a cpu kernel already"));
}

Diagnostic detail::other_element_type(std::string_view role, int index, DType actual, DType expected) {
  return {ErrorCode::DTypeMismatch,
          concat_text(role, " ", index, " is read as ", dtype_name(expected), " but holds ", dtype_name(actual)),
          {},
          {}};
}

namespace cpu {
namespace {

struct CustomStep {
  const CpuKernel* kernel = nullptr;
  std::optional<OpBox> op;
  std::string where;
  std::vector<View> views;  // operands, then results: dims of the tensor views
  std::size_t num_inputs = 0;
  std::vector<void*> data;  // by view; some pointers are relocated to callers' buffers
  std::vector<KernelInput> inputs;
  std::vector<KernelOutput> outputs;
};

void run_custom(CustomStep& s, std::int64_t) {
  s.inputs.clear();  // keeps the capacity, so that a run allocates nothing here
  s.outputs.clear();
  for (std::size_t i = 0; i < s.views.size(); ++i) {
    const View& v = s.views[i];
    const std::size_t bytes = size_bytes(v.dtype, v.elements());
    if (i < s.num_inputs)
      s.inputs.emplace_back(static_cast<int>(i), TensorView{s.data[i], v.dtype, v.dims, bytes});
    else
      s.outputs.emplace_back(static_cast<int>(i - s.num_inputs), MutableTensorView{s.data[i], v.dtype, v.dims, bytes});
  }
  if (std::optional<Diagnostic> d = s.kernel->run(KernelCall{*s.op, s.inputs, s.outputs})) {
    d->message = concat_text(op_text_name(*s.op), ": ", d->message);
    if (d->where.empty()) d->where = s.where;
    throw Error(std::move(*d));
  }
}

void lower_custom(LowerContext& c) {
  auto& s = c.keep<CustomStep>();
  s.kernel = find_kernel(c.op<ops::Custom>().name);
  s.op = c.node().op;
  s.where = node_where(c.graph(), c.id());
  s.num_inputs = c.node().inputs.size();
  double bytes = 0;
  for (int i = 0; i < c.num_inputs(); ++i) s.views.push_back(c.in(i));
  for (std::uint32_t r = 0; r < c.node().num_results(); ++r) s.views.push_back(c.out(static_cast<int>(r)));
  s.data.resize(s.views.size());
  s.inputs.reserve(s.num_inputs);
  s.outputs.reserve(s.views.size() - s.num_inputs);
  for (std::size_t i = 0; i < s.views.size(); ++i) {
    check(s.views[i].dense(), "a custom kernel got a strided value");
    c.point(s.data[i], s.views[i]);
    bytes += static_cast<double>(size_bytes(s.views[i].dtype, s.views[i].elements()));
  }
  if (is_ordered(c.node().op))  // runs on the thread that called the run
    c.step_alone<run_custom>(s, bytes / 2);
  else
    c.step<run_custom>(s, 1, bytes / 2);
}

const char* custom_refuses(const Graph& g, NodeId id) {
  const CpuKernel* kernel = find_kernel(g.node(id).op.as<ops::Custom>().name);
  if (!kernel) return "no kernel was registered for it";
  return refuse_unless(!kernel->accepts || kernel->accepts(g, id), "its kernel does not accept this node");
}

constexpr KernelEntry kCustomEntries[] = {{OpKind::Custom, "custom", custom_refuses, lower_custom}};

}  // namespace

std::span<const KernelEntry> custom_entries() { return kCustomEntries; }

}  // namespace cpu
}  // namespace rlx

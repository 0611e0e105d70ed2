// The prelude: all that most programs need.
#pragma once

#include "rlx/base/tick.h"
#include "rlx/base/trace.h"
#include "rlx/compiler/pipeline.h"
#include "rlx/compiler/preset_target.h"
#include "rlx/device/device.h"
#include "rlx/error.h"
#include "rlx/ir/chain.h"
#include "rlx/ir/custom_op.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/module.h"
#include "rlx/ir/op.h"
#include "rlx/ir/quant/calibration.h"
#include "rlx/ir/quant/quant_map.h"
#include "rlx/ir/text.h"
#include "rlx/report/report.h"  // of the library rlx::report
#include "rlx/runtime/build_info.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/env.h"
#include "rlx/runtime/model_function.h"
#include "rlx/runtime/nan_check.h"
#include "rlx/runtime/reports.h"
#include "rlx/runtime/session.h"
#include "rlx/tensor/tensor.h"
#include "rlx/transforms/hvp.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/module.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"

// The documented module names: either spelling works, `rlx::Graph` or `rlx::ir::Graph`.
namespace rlx {

namespace ir {
using rlx::Builder, rlx::DeclaredShape, rlx::Dim, rlx::Dims, rlx::DType, rlx::Element, rlx::Expr, rlx::Graph,
    rlx::GraphModule, rlx::GraphStage, rlx::HirModule, rlx::LirBufferPlan, rlx::LirModule, rlx::MirModule, rlx::Node,
    rlx::NodeId, rlx::NodeOrigin, rlx::OpKind, rlx::Shape, rlx::SymbolBinding, rlx::Tensor, rlx::Value;
using rlx::inspect_graph, rlx::inspect_graph_diff, rlx::inspect_hir, rlx::inspect_hir_stats, rlx::inspect_lir,
    rlx::inspect_mir, rlx::inspect_mir_diff, rlx::inspect_mir_stats, rlx::node_label, rlx::parse_text, rlx::print_text;
}  // namespace ir

namespace opt {
using rlx::CompileOptions, rlx::CompilePipeline, rlx::CompileResult, rlx::FusionOptions, rlx::FusionPolicy,
    rlx::FusionReport, rlx::FusionTarget, rlx::MissedFusion, rlx::MissReason, rlx::Pass, rlx::PipelineInspect,
    rlx::Precision, rlx::PrecisionPolicy;
using rlx::fusion_passes, rlx::fusion_passes_for_supported, rlx::inspect_compiled, rlx::inspect_fusion,
    rlx::inspect_pipeline, rlx::legalize_for_backend, rlx::legalize_or_rewrite_for_backend, rlx::rewrite_for_backend,
    rlx::run_passes, rlx::supported_for_target, rlx::supports_op;
}  // namespace opt

namespace autodiff {
using rlx::grad, rlx::grad_with_loss, rlx::hessian, rlx::hvp, rlx::jacfwd, rlx::jacrev, rlx::jvp, rlx::linearize,
    rlx::value_and_grad, rlx::vjp, rlx::vmap;
using rlx::grad_with_loss_module, rlx::GradResult, rlx::jvp_module, rlx::prepare_module_for_ad, rlx::Wrt;
}  // namespace autodiff

namespace quant {
using rlx::block_layout, rlx::dequantize_blocks, rlx::quant_scheme_name, rlx::quantize_blocks;
using rlx::CalibrationEntry, rlx::CalibrationRecord, rlx::QuantEntry, rlx::QuantMap;
using rlx::DType, rlx::Element, rlx::ElementSubtype, rlx::QuantScheme, rlx::ScaleMode, rlx::StraightThrough;
}  // namespace quant

namespace driver {
using rlx::all_devices, rlx::device_info, rlx::parse_device, rlx::time_ns;
using rlx::Backend, rlx::Device, rlx::DeviceInfo, rlx::Executable, rlx::Target, rlx::Tick;
}  // namespace driver

namespace runtime {
using rlx::available_apple_devices, rlx::available_devices, rlx::devices_for, rlx::dispatch_report_for_device,
    rlx::drain_device, rlx::fastest_among, rlx::fastest_device, rlx::first_unsupported_op, rlx::full_name,
    rlx::is_available, rlx::legalize_graph_for_device, rlx::maybe_dump_pipeline, rlx::maybe_log_fusion, rlx::supports,
    rlx::supports_graph, rlx::supports_run_slots, rlx::time_ns;
using rlx::CompiledGraph, rlx::CompileOptions, rlx::Device, rlx::IoInfo, rlx::LoadMode, rlx::Precision,
    rlx::PrecisionPolicy, rlx::Session, rlx::Slot, rlx::Tick;
}  // namespace runtime

namespace ops {
using BinaryOp = rlx::BinaryKind;
using CmpOp = rlx::CompareKind;
using rlx::ChainOperand, rlx::ChainStep, rlx::MaskKind;
}  // namespace ops

}  // namespace rlx

// The prelude: all that most programs need.
#pragma once

#include "rlx/compiler/pipeline.h"
#include "rlx/driver/device.h"
#include "rlx/error.h"
#include "rlx/ir/evaluate.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/inspect.h"
#include "rlx/ir/module.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/device_ext.h"
#include "rlx/runtime/session.h"
#include "rlx/tensor/tensor.h"
#include "rlx/transforms/hvp.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"

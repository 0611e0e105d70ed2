// Functions of values that are built of ops, family by family.
#pragma once

#include "rlx/functions/linalg.h"

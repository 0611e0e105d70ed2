"""jax.errors: the errors of traced values that are read are rlx.Error here."""

import rlx

JAXTypeError = JAXIndexError = rlx.Error
ConcretizationTypeError = TracerBoolConversionError = TracerArrayConversionError = rlx.Error
TracerIntegerConversionError = NonConcreteBooleanIndexError = UnexpectedTracerError = rlx.Error
KeyReuseError = JaxRuntimeError = rlx.Error

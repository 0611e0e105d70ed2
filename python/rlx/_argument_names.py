"""Names that NumPy, JAX and SciPy give to arguments: {function: {their name: ours}}.

Written by scripts/argument_names.py: do not edit.
"""

_GROUPS = (
    (
        "A=M",
        """numpy.linalg.matrix_rank""",
    ),
    (
        "A=a",
        """scipy.sqrtm""",
    ),
    (
        "A=a B=b C=q",
        """scipy.solve_sylvester""",
    ),
    (
        "A=a E=e",
        """scipy.linalg.expm_frechet""",
    ),
    (
        "A=x",
        """numpy.tile""",
    ),
    (
        "M=m N=n",
        """numpy.eye numpy.tri""",
    ),
    (
        "a1=a a2=b",
        """numpy.polyadd numpy.polymul numpy.polysub""",
    ),
    (
        "a1=x a2=y",
        """numpy.array_equal numpy.array_equiv""",
    ),
    (
        "a=x",
        """numpy.all numpy.any numpy.argmax numpy.argmin numpy.argpartition numpy.argsort numpy.argwhere
        numpy.array_str numpy.asarray numpy.average numpy.compress numpy.copy numpy.count_nonzero
        numpy.cumprod numpy.cumsum numpy.diagonal numpy.diff numpy.expand_dims numpy.fill_diagonal
        numpy.flatnonzero numpy.full_like numpy.histogram numpy.histogram_bin_edges numpy.linalg.matrix_power
        numpy.max numpy.mean numpy.median numpy.min numpy.moveaxis numpy.nanargmax numpy.nanargmin
        numpy.nancumprod numpy.nancumsum numpy.nanmax numpy.nanmean numpy.nanmedian numpy.nanmin
        numpy.nanpercentile numpy.nanprod numpy.nanquantile numpy.nanstd numpy.nansum numpy.nanvar numpy.ndim
        numpy.nonzero numpy.ones_like numpy.packbits numpy.partition numpy.percentile numpy.prod numpy.ptp
        numpy.quantile numpy.ravel numpy.repeat numpy.reshape numpy.resize numpy.roll numpy.rollaxis
        numpy.round numpy.shape numpy.size numpy.sort numpy.sort_complex numpy.squeeze numpy.std numpy.sum
        numpy.swapaxes numpy.take numpy.trace numpy.transpose numpy.unpackbits numpy.var""",
    ),
    (
        "a=x a_max=max a_min=min arr=x",
        """numpy.clip""",
    ),
    (
        "a=x b=y",
        """numpy.allclose numpy.cross numpy.dot numpy.inner numpy.isclose numpy.kron numpy.outer numpy.vdot""",
    ),
    (
        "a=x b=y x1=x x2=y",
        """numpy.matmul numpy.tensordot scipy.special.beta scipy.special.betaln""",
    ),
    (
        "a=x ind=indices v=values",
        """numpy.put""",
    ),
    (
        "a=x prototype=x",
        """numpy.zeros_like""",
    ),
    (
        "ar=x",
        """numpy.unique""",
    ),
    (
        "arg1=a arg2=kind",
        """numpy.issubdtype""",
    ),
    (
        "arr=x",
        """numpy.append numpy.array_repr numpy.delete numpy.extract numpy.insert numpy.put_along_axis
        numpy.take_along_axis""",
    ),
    (
        "array=x",
        """numpy.broadcast_to numpy.pad""",
    ),
    (
        "ary=x",
        """numpy.array_split numpy.dsplit numpy.ediff1d numpy.hsplit numpy.split numpy.vsplit""",
    ),
    (
        "element=x",
        """numpy.isscalar""",
    ),
    (
        "filt=x",
        """numpy.trim_zeros""",
    ),
    (
        "m=x",
        """numpy.flip numpy.fliplr numpy.flipud numpy.rot90 numpy.tril numpy.triu""",
    ),
    (
        "n=m",
        """lax.polygamma""",
    ),
    (
        "object=x",
        """numpy.array""",
    ),
    (
        "operands=arrays out=dtype",
        """numpy.stack""",
    ),
    (
        "out=dtype",
        """numpy.concatenate""",
    ),
    (
        "p=x",
        """scipy.special.ndtri""",
    ),
    (
        "p=x q=y x1=x x2=y",
        """scipy.special.kl_div scipy.special.rel_entr""",
    ),
    (
        "start_or_stop=start",
        """numpy.arange""",
    ),
    (
        "tup=arrays",
        """numpy.column_stack numpy.dstack numpy.hstack numpy.vstack""",
    ),
    (
        "type1=a type2=b",
        """numpy.promote_types""",
    ),
    (
        "v=x",
        """numpy.diag numpy.diagflat""",
    ),
    (
        "val=x",
        """numpy.imag numpy.real""",
    ),
    (
        "x1=a x2=b x3=c x4=x",
        """scipy.hyp2f1""",
    ),
    (
        "x1=a x2=b x3=x",
        """lax.betainc scipy.hyp1f1""",
    ),
    (
        "x1=a x2=x",
        """lax.igamma lax.igammac""",
    ),
    (
        "x1=h x2=a",
        """scipy.owens_t""",
    ),
    (
        "x1=n x2=x",
        """scipy.expn""",
    ),
    (
        "x1=x x2=lmbda",
        """scipy.boxcox scipy.boxcox1p""",
    ),
    (
        "x1=x x2=y",
        """numpy.add numpy.arctan2 numpy.bitwise_and numpy.bitwise_or numpy.bitwise_xor numpy.copysign
        numpy.divide numpy.divmod numpy.equal numpy.float_power numpy.floor_divide numpy.fmax numpy.fmin
        numpy.fmod numpy.gcd numpy.greater numpy.greater_equal numpy.heaviside numpy.hypot numpy.lcm
        numpy.ldexp numpy.left_shift numpy.less numpy.less_equal numpy.linalg.cross numpy.linalg.outer
        numpy.logaddexp numpy.logaddexp2 numpy.logical_and numpy.logical_or numpy.logical_xor numpy.matvec
        numpy.maximum numpy.minimum numpy.multiply numpy.nextafter numpy.not_equal numpy.power
        numpy.remainder numpy.right_shift numpy.subtract numpy.vecdot numpy.vecmat scipy.special.xlog1py
        scipy.special.xlogy""",
    ),
    (
        "x1=z x2=m",
        """scipy.poch""",
    ),
    (
        "x=z",
        """scipy.loggamma scipy.spence scipy.wofz""",
    ),
    (
        "y=x",
        """numpy.iterable""",
    ),
    (
        "z=x",
        """numpy.angle""",
    ),
)
ALIASES = {f: dict(a.split("=") for a in aliases.split()) for aliases, fs in _GROUPS for f in fs.split()}

from . import gguf as gguf

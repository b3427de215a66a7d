import numpy as np
from numpy.typing import NDArray

CLOSURE: np.dtype[np.void]
SPAN: np.dtype[np.void]

def overlap(free: NDArray[np.void], booked: NDArray[np.void]) -> bool: ...

import numpy as np
from numpy.typing import NDArray

SPAN: np.dtype[np.void]

def overlap(free: NDArray[np.void], booked: NDArray[np.void]) -> bool: ...

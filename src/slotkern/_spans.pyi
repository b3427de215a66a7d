import numpy as np

SPAN: np.dtype[np.void]

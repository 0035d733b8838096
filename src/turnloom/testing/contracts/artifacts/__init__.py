"""Contract suites for artifact stores."""

from turnloom.testing.contracts.artifacts.indexing import IndexingContract
from turnloom.testing.contracts.artifacts.querying import (
    ArtifactQueryContract,
    CountingContract,
    PagingContract,
)
from turnloom.testing.contracts.artifacts.storing import (
    ArtifactStorageContract,
    ConsumptionsContract,
    FollowingContract,
)
from turnloom.testing.contracts.artifacts.visibility import (
    ArtifactVisibilityContract,
    TenantsContract,
)

__all__ = ["ArtifactStoreContract", "FollowingContract"]


class ArtifactStoreContract(
    ArtifactStorageContract,
    PagingContract,
    ArtifactQueryContract,
    IndexingContract,
    ArtifactVisibilityContract,
    ConsumptionsContract,
    CountingContract,
    TenantsContract,
):
    """The suite for `ArtifactStore`."""

"""Names -> tables and views: folders of a warehouse, as Paimon's filesystem catalog lays them out."""
